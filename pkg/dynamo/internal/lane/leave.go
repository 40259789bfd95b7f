package lane

import (
	"slices"
)

// together locks the lanes of some requests, does something, and unlocks them. Requests may
// have an end before or while it waits for the locks; only later ones can come to none.
func together(requests []*Request, do func()) {
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
			l.mu.Unlock()
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

// End is how a request stood when its caller left.
type End uint8

// The ends.
const (
	Unsent  End = iota // it is not applied
	Unknown            // it may be applied
	Decided            // it has an end: see Request.Err
)

// Abandon ends the wait for requests whose caller leaves without a decision, and returns
// how each stood. What waits is not sent. What a write under way takes is given back,
// unless the caller is admitted all the same.
func (s *Lanes) Abandon(requests []*Request) []End {
	ends := make([]End, len(requests))
	together(requests, func() {
		for i, r := range requests {
			ends[i] = r.abandon()
		}
	})
	return ends
}

// abandon ends the wait for one request. Its lane is locked.
func (r *Request) abandon() End {
	switch r.phase {
	case over:
		return Decided
	case sent:
		r.claim, r.undo = left, !r.Keep
		return Unknown
	case queued:
	}
	r.claim = left
	r.lane.Load().remove(r)
	r.lane.Load().lessee.release(r)
	r.finish(errLeft)
	if r.unsure {
		return Unknown
	}
	return Unsent
}

// GiveBack has the lane of a request give back what it took, once it can.
func (s *Lanes) GiveBack(r *Request) {
	if r.Err != nil {
		return
	}
	if undo := r.Undo(); undo != nil {
		s.Send(r.owed(undo))
	}
}
