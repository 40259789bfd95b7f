package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
)

// cascade is a call over several lanes that their leases decide in one pass.
type cascade struct {
	requests []*Request
	draws    [maxTogether][]lease.Draw
	denied   [maxTogether]bool
	denies   bool // one of them is
}

// ServeTogether decides the requests of a call over several items by the leases of their
// lanes, all under the locks of all lanes: every one is covered and all are taken, or one is
// denied and none is. It reports false, and has done nothing, where the leases do not decide.
func (s *Lanes) ServeTogether(requests []*Request) bool {
	if len(requests) < 2 || len(requests) > maxTogether || s.Counters.Leases.Load() == 0 {
		return false
	}
	for _, r := range requests {
		l := s.hold(r.Site, r.Index)
		r.Site = &l.site
		r.lane.Store(l)
	}
	c := cascade{requests: requests}
	served := false
	s.together(requests, func() {
		var room [maxTogether]*Lane
		if len(lanesOf(room[:0], requests)) == len(requests) {
			served = c.decide(s)
		}
	})
	for _, r := range requests {
		laneOf(r).holds.Add(-1)
	}
	return served
}

// decide decides the call. The lanes are locked.
func (c *cascade) decide(s *Lanes) bool {
	now := s.cfg.Now()
	for i, r := range c.requests {
		if !c.weigh(i, r, now) {
			return false
		}
	}
	if !c.denies && !c.spend(s) {
		return false
	}
	for i, r := range c.requests {
		l := laneOf(r)
		l.used = now
		l.view.mark(now)
		l.lessee.count(r, c.draws[i])
		if !c.denies {
			l.held.ledger.Draw(c.draws[i]) // rule: calls over several buckets count what leases served
		}
		l.held.tell(r.Request, l.view.state, l.view.now, !c.denied[i])
		if c.denies {
			r.unspent() // rule: a denied cascade has taken nothing
		}
		l.lessee.served(r)
		if l.held.holder.Due(l.view.now) {
			l.start()
		}
	}
	return true
}

// weigh compares a request with the lease of its lane. It reports false where the lease
// does not decide it.
func (c *cascade) weigh(i int, r *Request, now time.Time) bool {
	l := laneOf(r)
	l.consult(now)
	l.view.advance(r.At)
	if !l.lessee.leases(r) || !l.held.holder.State().Serves() {
		return false
	}
	draws, ok := l.held.draws(r.Request)
	if !ok || len(draws) == 0 || r.Books() {
		return false
	}
	c.draws[i] = draws
	if l.held.holder.Covers(l.view.now, draws) {
		return true
	}
	c.denied[i] = l.held.holder.Miss(l.view.now, r.patience(now).Milliseconds(), draws) == lease.Denied && !l.lessee.sole()
	c.denies = c.denies || c.denied[i] // rule: one request denied denies the cascade
	return c.denied[i]
}

// spend takes all draws. It checks after that whether the leases still last, so that no
// pause of the process comes between.
func (c *cascade) spend(s *Lanes) bool {
	for i, r := range c.requests {
		laneOf(r).held.holder.Spend(c.draws[i])
	}
	clocks, alive := s.clocks(s.cfg.Now()), true
	for _, r := range c.requests {
		alive = laneOf(r).held.holder.Alive(clocks) && alive
	}
	if alive { // rule: the leases of a cascade are alive after the spend
		return true
	}
	for i, r := range c.requests {
		l := laneOf(r)
		for _, d := range c.draws[i] {
			l.held.holder.Refund(l.view.now, d.Limit, d.Take) // rule: leases that are alive get back what a cascade drew
		}
	}
	return false
}

// unspent notes that the amounts in a request's answer were not taken.
func (r *Request) unspent() {
	for i := range r.Spends {
		r.Spends[i].Take, r.Spends[i].Back = 0, 0
	}
}
