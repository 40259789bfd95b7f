package lane

import (
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
)

// DecideLate ends the wait for the requests of a call that have no end yet. judge gets the
// answers to their callers, nil for those that had an end before, and returns whether the
// call is admitted. It is called under locks of the lanes.
func (s *Lanes) DecideLate(requests []*Request, judge func(told []*plan.Request) bool) {
	told, admitted := make([]*plan.Request, len(requests)), false
	s.together(requests, func() {
		for i, r := range requests {
			if r.state == waiting {
				laneOf(r).lease.release(r, false)
			}
			if r.state != over {
				told[i] = laneOf(r).estimator.estimate(r)
			}
		}
		admitted = judge(told)
		for i, r := range requests {
			if told[i] != nil {
				laneOf(r).closer.endLate(r, told[i], admitted)
			}
		}
	})
	if admitted {
		s.Counters.LateAdmitted.Add(1)
	} else {
		s.Counters.LateDenied.Add(1)
	}
}

// NeedClock returns the error of requests that have no end yet, because there is no clock to be
// trusted: no item is created without, and none refilled. nil = they do not wait for that.
func (s *Lanes) NeedClock(requests []*Request) (err error) {
	if !s.reading().Doubtful {
		return nil
	}
	s.together(requests, func() {
		for _, r := range requests {
			v := &laneOf(r).view
			if r.state == waiting && (r.doubts > 0 || v.known && v.state == nil) {
				err = clockError(s.reading())
			}
		}
	})
	return err
}

// endLate ends the wait for a request that was decided late. The lane
// owes its bookings, and its takes if it is admitted. The takes of a write under way for a denied
// one are given back.
func (l *closer) endLate(r *Request, told *plan.Request, admitted bool) {
	r.Wait = nil
	if r.state.inWrite() {
		e := deniedLate // rule: a late denial gives back what its write takes
		if admitted {
			e = admittedLate
		}
		l.happen(r, e)
		return
	}
	l.remove(r)
	var rest *plan.Request
	switch {
	case admitted && told.Takes():
		rest = told.Force()
	default:
		rest = withoutTakes(r.Request)
	}
	l.happen(r, ended)
	l.oweFor(r, rest, told)
}
