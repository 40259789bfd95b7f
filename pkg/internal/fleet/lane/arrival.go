package lane

import (
	"slices"
	"time"
)

// enter puts a request into the queue, or ends it at once. It reports whether it did the latter.
func (l *Lane) enter(r *Request, now time.Time) (ended bool) {
	l.events++
	r.asked, r.entered, l.used = l.events, now, now
	r.lane.Store(l)
	l.closer.happen(r, entered)
	l.consult(now)
	l.view.advance(r.At)
	l.view.mark(now)
	s, due := l.lease.serve(r, now)
	if due {
		l.start()
	}
	if s == byLease || s != byUpdate && l.turnAway(r, now) {
		return true
	}
	r.expires = now.Add(l.host.cfg.Budget)
	l.queue = append(l.queue, r)
	if l.running && l.crowd != nil { // it may wait for a turn, and is not stepped before
		l.wake(r.expires)
	}
	if r.state == waiting && (len(l.out) > 0 || l.crowd.full()) && l.host.silent(now) {
		l.queue = l.queue[:len(l.queue)-1]
		l.closer.fail(r, errSilent, now)
		return true
	}
	l.start()
	return false
}

// repay puts an owed request into the queue, or has another one there stand for it.
func (l *Lane) repay(r *Request, now time.Time) {
	r.lane.Store(l)
	if l.view.advance(r.At); !r.apart && l.join(r, now) {
		return
	}
	if !l.enter(r, now) && !r.apart {
		l.freshen(r)
	}
}

// turnAway denies a request at its arrival where those before it ask for all tokens that the
// lane may have. It reports whether it did: such a request is not worth the wait for a write.
func (l *Lane) turnAway(r *Request, now time.Time) bool {
	v, n := &l.view, l.replicas(now)
	switch {
	case n == 1 || v.head == nil || !v.head.Exists() || v.clock.Doubtful || v.elsewhere(l.index):
		return false
	case r.state != waiting || r.part != nil || r.Books() || r.Limits.Hash() != v.head.Version.Hash || !v.fresh(r.asked, now):
		return false
	}
	short := l.estimator.lacks(r, now)
	if short.limit == "" {
		short = l.estimator.beyond(r, l.queue, n)
	}
	if short.limit == "" {
		return false
	}
	old := l.estimator.outlived(r, n, now)
	if old != nil {
		l.remove(old)
		l.refuseFor(old, short)
		return false
	}
	l.refuseFor(r, short)
	return true
}

// shortage is a limit that has too little for a request; limit is "" where there is none.
type shortage struct {
	limit   string
	left    int64 // tokens that the requests before it leave
	byShare bool  // by the lane's share: others may have more
}

// refuseFor denies a request for which a limit has too little.
func (l *Lane) refuseFor(r *Request, short shortage) {
	l.view.bare(r.Request).Weigh(r.Request)
	r.ByShare = short.byShare && r.Admitted // rule: a denial by a share of what is there is no state of the item
	Exceed(r.Request, short.limit, short.left)
	l.closer.byCentre(r)
}

// outlivedTrips is in how many mean round trips most replies come.
const outlivedTrips = 3

// outlived returns the oldest request that waits, if a reply may come after its deadline and a
// newer request fits in its place. nil = there is none. All of them wait at the same time, so
// that any one may be denied. A decision could come too late for this one alone.
func (l *estimator) outlived(r *Request, n int, now time.Time) *Request {
	if len(l.queue) == 0 {
		return nil
	}
	old := l.queue[0]
	sends := l.pace.Next(len(l.out), n)
	switch {
	case old.state != waiting || old.part != nil || old.Books() || !l.view.fresh(old.asked, now):
		return nil
	case old.Limits.Hash() != r.Limits.Hash() || old.patience(sends) >= outlivedTrips*l.pace.RoundTrip():
		return nil
	}
	if l.beyond(r, l.queue[1:], n).limit != "" {
		return nil
	}
	return old
}

// beyond returns a limit that those before a request use up: they ask for all that the lane may have.
func (l *estimator) beyond(r *Request, queue []*Request, n int) shortage {
	s := l.newShare(n, l.view.head, append(slices.Clone(queue), r))
	for _, before := range queue {
		asks(&s, before)
		s.Take(before.Request)
	}
	limit, beyond := s.Short(r.Request, haste{deniable: true})
	if !beyond {
		return shortage{}
	}
	return shortage{limit: limit, left: s.Left(limit)}
}

// lacks returns a limit for which a request would be denied late. It is for requests whose
// deadline comes before a reply: the tokens of their writes would be given back.
func (l *estimator) lacks(r *Request, now time.Time) shortage {
	if l.pace.RoundTrip() < r.patience(now) { // rule: a request that is decided in time waits for it
		return shortage{}
	}
	for i := range r.Spends {
		sp := &r.Spends[i]
		waiting := int64(0)
		there, whole := l.believed(r, sp.Limit)
		for _, before := range l.queue {
			if !before.state.owes() {
				waiting = min(waiting+before.Wants(sp.Limit), most)
			}
		}
		if need := max(sp.Need, sp.Ask); need > 0 && there-waiting < need { // rule: a late denial at the arrival counts the requests before it
			return shortage{limit: sp.Limit, left: max(whole-waiting, 0), byShare: true}
		}
	}
	return shortage{}
}
