package lane

import "slices"

// maxTogether is of how many lanes a call can be decided at once from leases.
const maxTogether = 8

// together locks the lanes of some requests, does something, and unlocks them. Requests may
// have an end before or while it waits for the locks; only later ones can come to none.
func (s *Lanes) together(requests []*Request, do func()) {
	var room, again [maxTogether]*Lane
	for {
		lanes := lanesOf(room[:0], requests)
		for _, l := range lanes {
			l.mu.Lock()
		}
		still := slices.Equal(lanes, lanesOf(again[:0], requests))
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

// lanesOf returns the lanes of requests, each once, in the order of their locks: in some memory, if
// that has room.
func lanesOf(lanes []*Lane, requests []*Request) []*Lane {
	for _, r := range requests {
		if l := laneOf(r); l != nil {
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
