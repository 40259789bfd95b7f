package dynamo

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// probeQuantum is how long a lane asks for nothing more for requests like those that
// it has just denied.
const probeQuantum = 50 * time.Millisecond

// probe is how a lane that may have leases spares the item of a bucket that is empty:
// after a denial it denies what the item as it was seen then does not cover, and asks
// nobody, until the quantum is over; then it takes its share of what was refilled, and
// asks nobody for another one: what is left, if it is no more than is refilled in a
// quantum, is for others. If it took that too, all who share the bucket would write all
// the time, and most writes be refused. So a request is denied for want of no more than what is refilled in two
// quanta. What charges or gives back is never held up.
type probe struct {
	until  time.Time
	at     int64 // what time it was when the item was seen
	leaves bool  // to others what is there, if it is no more than is refilled in a quantum
}

// next goes on after a write: for another quantum the lane asks for nothing.
func (p *probe) next(now time.Time, at int64) {
	if p.goesOn(now) {
		*p = probe{until: now.Add(probeQuantum), at: at, leaves: true}
	}
}

// goesOn reports whether there was a denial, or what follows from one, of late.
func (p *probe) goesOn(now time.Time) bool { return now.Before(p.until.Add(probeQuantum)) }

// answer decides what can be decided by what a lane knows, and returns the rest.
func (s *Store) answer(l *lane, pending []*request) []*request {
	if !s.leasing(l) || len(pending) == 0 {
		return l.answer(pending)
	}
	l.knows.lease = leaseAsk{}
	s.keepWaiting(l, pending)
	l.helpless = false
	answered, left := l.knows.answer(pending)
	s.addRest(l, answered, nil)
	for _, r := range answered {
		if r.call != nil && !r.admitted && s.probes(l, r) {
			l.probe = probe{until: s.cfg.Now().Add(probeQuantum), at: l.knows.moment()}
		}
		r.done(nil)
	}
	return left
}

// keepWaiting keeps those requests from being denied that need what only a write can
// bring: what the lane's lease has left, and leases that nobody serves any more.
func (s *Store) keepWaiting(l *lane, pending []*request) {
	k := &l.knows
	if l.helpless || !k.known || k.view == nil || k.clock.Doubtful {
		return
	}
	k.advance(pending)
	dead := l.dead(s.cfg.Now())
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	if l.holder.text == "" && len(dead) == 0 {
		return
	}
	st := newStage(k.view, k.moment())
	for _, r := range pending {
		if r.confirmed && (l.holder.text != "" && st.helps(r, &l.holder) || len(dead) > 0 && st.helps(r, nil)) {
			r.confirmed = false
		}
	}
}

// probes reports whether a denial has a lane hold back those that follow: where several
// come within a quantum, and the bucket holds much more than is refilled in one.
func (s *Store) probes(l *lane, r *request) bool {
	v := l.knows.view
	if v == nil || v.shard.Sharded() || !s.cfg.Leases || r.policy.None {
		return false
	}
	for i := range r.spends {
		sp := &r.spends[i]
		if b := v.find(sp.limit); sp.exceeded && b != nil && b.params.Capacity/4 < refillIn(b.params, probeQuantum) {
			return false
		}
	}
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	return l.holder.demand.hot(s.cfg.Now(), probeQuantum)
}

// leave has each limit that has less than is refilled in a time have nothing.
func (s *stage) leave(in time.Duration) {
	for i := range s.balances {
		b := &s.balances[i]
		if due := refillIn(b.params, in); b.tokens < due && due <= b.params.Capacity/4 {
			b.tokens = min(b.tokens, 0)
		}
	}
}

// refillIn returns what is refilled in a time.
func refillIn(p tokenbucket.Params, in time.Duration) int64 {
	due, _ := dueAt(tokenbucket.Bucket{}, p, in.Milliseconds())
	return due
}

// withhold denies those requests that are not worth asking for yet, and returns the
// others.
func (s *Store) withhold(l *lane, pending []*request) []*request {
	k, left := &l.knows, l.probe.until.Sub(s.cfg.Now())
	if left <= 0 || left > probeQuantum || len(pending) == 0 || !k.known || k.view == nil || k.clock.Doubtful {
		return pending
	}
	k.advance(pending)
	// What showed that there was too little may have been under way for long.
	l.probe.at = max(l.probe.at, k.view.refilled, k.now-probeQuantum.Milliseconds())
	if _, adopted := k.newest(pending); adopted != nil {
		return pending
	}
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	then, now := newStage(k.view, l.probe.at), newStage(k.view, k.now)
	if l.probe.leaves {
		then.leave(probeQuantum)
	}
	ms := (left + time.Millisecond - 1).Milliseconds()
	return slices.DeleteFunc(pending, func(r *request) bool {
		if r.call == nil || r.policy.None || !r.onlyAsks() || !then.helps(r, nil) || then.helps(r, &l.holder) {
			return false
		}
		now.postpone(r, ms, &l.holder)
		r.done(nil)
		return true
	})
}

// onlyAsks reports whether a request takes or looks, and does nothing else.
func (r *request) onlyAsks() bool {
	return r.asks && !slices.ContainsFunc(r.spends, func(sp spend) bool { return sp.give > 0 || sp.cost > 0 || sp.usage != 0 || sp.ask > 0 })
}

// postpone denies a request that is not admitted for some ms, whatever is refilled until
// then. What is told to be left has what h has left: others may be served from it.
func (s *stage) postpone(r *request, ms int64, h *holder) {
	for i := range r.spends {
		sp := &r.spends[i]
		if !sp.held {
			continue
		}
		b := s.find(sp.limit)
		left := b.tokens + h.restOf(sp.limit)
		sp.left, sp.back = tokenbucket.Bucket{Tokens: left, Remainder: b.remainder, Refilled: s.now, Carried: b.carried}, 0
		due, _ := dueAt(tokenbucket.Bucket{Remainder: b.remainder}, b.params, ms)
		if sp.exceeded && left+due >= sp.need {
			sp.left = lacking(b.params, sp.need, ms)
			sp.left.Refilled = s.now
		}
	}
}
