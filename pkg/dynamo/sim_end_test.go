package dynamo

import (
	"errors"
	"fmt"
)

// settle has all come that is on its way, and holds what was done against what callers
// were told.
func (s *sim) settle() error {
	s.lost = false
	for range 1000 {
		idle := len(s.net) == 0
		for len(s.net) > 0 {
			s.deliver()
		}
		for _, r := range s.replicas {
			switch {
			case r.flight != nil:
				s.timeout(r)
			case len(r.waiting) > 0:
				s.plan(r)
			default:
				continue
			}
			idle = false
		}
		if s.corrupt != nil {
			return s.corrupt
		}
		if idle {
			return s.checkAccount()
		}
		s.now += s.unit
	}
	return errors.New("the replicas do not come to rest")
}

// checkAccount requires that what was done is what callers were told.
func (s *sim) checkAccount() error {
	for _, c := range s.calls {
		s.told(c.request, c.answered == 0)
	}
	for _, u := range s.undos {
		s.told(u, u.state.Load() != finished)
	}
	return s.account.check()
}

// told takes down what the caller of a request was told. One that was not told was of a
// process that died.
func (s *sim) told(q *request, dead bool) {
	only := []*request{q}
	if dead || q.err != nil {
		s.account.untold(only, dead, q.err)
		return
	}
	s.account.expectRequest(q, q.admitted)
}

// servedOf returns what a lease did for a request.
func servedOf(q *request) []effect {
	var all []effect
	for i := range q.spends {
		if sp := &q.spends[i]; sp.held {
			e := effect{request: q, limit: sp.limit, given: sp.give, taken: sp.cost}
			if q.admitted {
				e.admitted, e.taken = sp.take, e.taken+sp.take
			}
			all = append(all, e)
		}
	}
	return all
}

// checkKept requires of a write that it takes no more than is taken and charged by its
// requests, what a lease reports as spent, and all of the leases of others that it frees.
// It is not asked where the limits change.
func (s *sim) checkKept(f *simFlight) error {
	before, after := s.truth[len(s.truth)-2].view, s.truth[len(s.truth)-1].view
	if after == nil || before != nil && before.version != after.version {
		return nil
	}
	if before == nil {
		before = fullView(after.limits, after.version.Generation, s.now)
	}
	for i := range after.balances {
		x := &after.balances[i]
		b := before.find(x.limit.Name)
		if b == nil {
			continue
		}
		had := tokensAt(b, s.late()) + b.leased - amountOf(f.spent, x.limit.Name)
		given := int64(0)
		for _, e := range f.effects {
			if e.limit == x.limit.Name {
				given += e.given
				had -= e.taken
			}
		}
		if f.plan.step != nil {
			for j := range f.plan.step.dead {
				had -= f.plan.step.dead[j].of(x.limit.Name)
			}
		}
		had += roomFor(b, given, s.late())
		if has := tokensAt(x, s.late()) + x.leased; has < had-1 {
			return fmt.Errorf("limit %s: a write left %d millitokens, less than %d: lost for good", x.limit.Name, has, had)
		}
	}
	return nil
}
