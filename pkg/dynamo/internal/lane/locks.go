package lane

import "slices"

// together locks the lanes of some requests, does something, and unlocks them. Requests may
// have an end before or while it waits for the locks; only later ones can come to none.
func (s *Lanes) together(requests []*Request, do func()) {
	for {
		lanes := lanesOf(requests)
		for _, l := range lanes {
			l.mu.Lock()
		}
		still := slices.Equal(lanes, lanesOf(requests))
		if still {
			do()
		}
		for _, l := range lanes {
			s.unlock(l)
		}
		if still {
			return
		}
	}
}

// lanesOf returns the lanes of requests, each once, in the order of their locks.
func lanesOf(requests []*Request) []*Lane {
	lanes := make([]*Lane, 0, len(requests))
	for _, r := range requests {
		if l := r.lane.Load(); l != nil {
			lanes = append(lanes, l)
		}
	}
	slices.SortFunc(lanes, func(a, b *Lane) int {
		switch {
		case a.order < b.order:
			return -1
		case a.order > b.order:
			return 1
		}
		return 0
	})
	return slices.Compact(lanes)
}
