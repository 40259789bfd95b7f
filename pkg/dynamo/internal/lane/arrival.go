package lane

import (
	"slices"
	"time"
)

// turnAway denies a request at its arrival where what waits before it asks for all that the lane
// may have. It reports whether it did: such a request is not worth the wait for a write.
func (l closer) turnAway(r *Request, now time.Time) bool {
	v, n := &l.view, l.replicas(now)
	switch {
	case n == 1 || v.head == nil || !v.head.Exists() || v.clock.Doubtful || v.elsewhere(l.index):
		return false
	case r.claim != awaited || r.part != nil || r.Books() || r.Limits.Hash() != v.head.Version.Hash || !v.fresh(r, now):
		return false
	}
	limit := l.estimator.lacks(r, now)
	var s share
	if limit == "" {
		s, limit = l.estimator.beyond(r, n)
	}
	if limit == "" {
		return false
	}
	l.planner.bare(r).Weigh(r.Request)
	s.deny(r, limit)
	l.byCentre(r)
	return true
}

// beyond returns a limit of which those that wait before a request ask for all that the lane
// may have, "" for none, and the lane's share.
func (l estimator) beyond(r *Request, n int) (s share, limit string) {
	queue := append(slices.Clone(l.queue), r)
	s = l.newShare(n, l.view.head, queue)
	for _, before := range l.queue {
		_, _ = s.short(before) // it asks
		s.take(before)
	}
	limit, beyond := s.short(r)
	if !beyond {
		limit = ""
	}
	return s, limit
}

// lacks returns a limit for which a request would be denied late, "" for none. It is asked of
// requests whose deadline comes before a reply: what their writes took would be given back.
func (l estimator) lacks(r *Request, now time.Time) string {
	if l.pace.roundTrip() < r.patience(now) {
		return ""
	}
	for i := range r.Spends {
		sp := &r.Spends[i]
		waiting := max(sp.Need, sp.Ask)
		for _, before := range l.queue {
			if before.claim != detached {
				waiting = min(waiting+before.wants(sp.Limit), most)
			}
		}
		if sp.Need+sp.Ask > 0 && l.believed(r, sp.Limit) < waiting {
			return sp.Limit
		}
	}
	return ""
}
