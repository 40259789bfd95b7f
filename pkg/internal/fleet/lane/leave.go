package lane

// End is how a request stood when its caller left.
type End uint8

// The ends.
const (
	Unsent  End = iota // it is not applied
	Unknown            // it may be applied
	Decided            // it has an end: see Request.Err
)

// Abandon ends the wait for requests whose caller leaves without a decision, and returns
// how each stood. A request that waits is not sent. The take of a write under way is
// given back, unless the caller is admitted all the same.
func (s *Lanes) Abandon(requests []*Request) []End {
	ends := make([]End, len(requests))
	s.together(requests, func() {
		for i, r := range requests {
			ends[i] = laneOf(r).closer.abandon(r)
		}
	})
	return ends
}

// abandon ends the wait for one request.
func (l *closer) abandon(r *Request) End {
	switch {
	case r.state == over:
		return Decided
	case r.state.inWrite():
		l.happen(r, abandoned)
		return Unknown
	}
	l.remove(r)
	l.lease.release(r, false) // rule: a request that is abandoned keeps nothing of the lease
	l.finish(r, errLeft)
	if r.unsure || r.strayed {
		return Unknown
	}
	return Unsent
}

// GiveBack has the lane of a request give its take back, once it can.
func (s *Lanes) GiveBack(r *Request) {
	if r.Err != nil {
		return
	}
	if undo := r.Undo(); undo != nil {
		s.Send(r.owed(undo))
	}
}
