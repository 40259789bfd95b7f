package dynamo

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Leases are held by the lanes' own holders. What is asked for is drawn, beside what
// lanes would ask for, so that it comes at any time and in any size.

const (
	simTerm = 32                       // units that a lease may be served for
	simLent = int64(3) * limiter.Milli // a grant, at most, mostly
)

// clock is a time by which a lease's term is simTerm units. All holders run by it, as
// they would by clocks that run equally fast, and are set as they like.
func (s *sim) clock() time.Time {
	return time.Unix(0, 0).Add(time.Duration((s.now-simStart)/s.unit) * (leaseTerm / simTerm))
}

// serve decides a request by the replica's lease, and reports whether it could.
func (s *sim) serve(r *simReplica, q *request) bool {
	if !s.lease || s.r.IntN(8) == 0 || len(r.store.serveSome(r.lane, []*request{q})) > 0 {
		return false
	}
	s.leased++
	if err := s.account.did(q, servedOf(q)); err != nil && s.corrupt == nil {
		s.corrupt = err
	}
	for i := range q.spends {
		q.spends[i].found += q.spends[i].cost
	}
	for _, f := range s.refunds {
		if f.request == q {
			f.applied = s.now
		}
	}
	return true
}

// ask says what the replica's next write is to do to leases.
func (s *sim) ask(r *simReplica, pending []*request) {
	h, k := &r.lane.holder, &r.lane.knows
	if k.lease = (leaseAsk{}); !s.lease || k.view == nil {
		return
	}
	if s.r.IntN(4) == 0 && !s.early {
		h.wanted, h.recall = true, h.recall || s.r.IntN(2) == 0
		r.store.ask(r.lane, pending)
		return
	}
	a := leaseAsk{replica: r.store.replica, id: strconv.FormatUint(r.store.leaseIDs.Add(1), 36), now: s.now + s.skews[r.index]}
	if s.early {
		a.now = 0
	}
	a.forced = s.r.IntN(3) > 0
	if s.r.IntN(8) > 0 {
		a.size = s.grant
	}
	returns := h.returning() || !h.alive(s.clock(), 0) || h.recall || s.r.IntN(6) == 0
	if h.text != "" {
		a.own = h.own(returns)
	}
	a.dead = r.lane.dead(s.clock())
	k.lease = a
	h.prepare(&flight{refilled: k.view.refilled, version: k.version(), returns: returns && h.text != "", spent: a.spentOf()})
}

// grant draws how much of what is left is taken on lease.
func (s *sim) grant(left []amount) []amount {
	all, whole := s.r.IntN(8) == 0, s.r.IntN(2) == 0
	for i := range left {
		switch n := max(left[i].tokens, 0); {
		case all:
			left[i].tokens = n
		case whole:
			left[i].tokens = min(n, (1+s.r.Int64N(simLent/limiter.Milli))*limiter.Milli)
		default:
			left[i].tokens = min(n, s.r.Int64N(simLent+1))
		}
	}
	return left
}

// conceal has a plan grant what the item does not count, all but a millitoken.
func (r *simReplica) conceal(p *plan) {
	if p.step == nil || len(p.step.granted) == 0 {
		return
	}
	r.hidden = nil
	held := slices.Clone(p.step.held.amounts)
	for i := range p.stage.balances {
		b := &p.stage.balances[i]
		for j := range held {
			if a := &held[j]; a.limit == b.limit.Name && b.granted > 1 {
				b.lent -= b.granted - 1
				a.tokens -= b.granted - 1
				r.hidden = append(r.hidden, amount{a.limit, b.granted - 1})
			}
		}
	}
	p.step.held = newHolding(p.step.held.replica, p.step.held.id, held)
	r.hides = p.step.held.text
}

// before notes what the holder has, for what a run without a rule does afterwards.
func (r *simReplica) before() []amount {
	rest := make([]amount, len(r.lane.holder.stocks))
	for i, p := range r.lane.holder.stocks {
		rest[i] = amount{p.limit, p.rest}
	}
	return rest
}

// after does what a rule forbids that the run goes without, once the holder has seen
// the item.
func (s *sim) after(r *simReplica, rest []amount) {
	h := &r.lane.holder
	if s.immortal && h.text != "" {
		h.until = s.clock().Add(1000 * leaseTerm)
	}
	if s.unlent && h.text != "" && h.text == r.hides {
		for _, a := range r.hidden {
			if p := h.stock(a.limit); p != nil {
				p.rest, p.quantity = p.rest+a.tokens, p.quantity+a.tokens
			}
		}
		r.hidden = nil
	}
	if s.twice && h.text == "" && len(rest) > 0 {
		limits := s.versions[0]
		q := &request{site: r.lane.site, key: s.key, limits: limits, version: schema.Version{Generation: 1, Hash: limits.Hash()}, now: s.now + s.skews[r.index]}
		for _, a := range rest {
			q.spends = append(q.spends, spend{limit: a.limit, give: a.tokens, usage: -a.tokens})
		}
		r.waiting = append(r.waiting, q)
	}
}

// outstanding returns what the holders have of a limit, or may come to know that they have.
func (s *sim) outstanding(limit string) int64 {
	v, sum := s.item(nil), int64(0)
	for _, r := range s.replicas {
		h, text := &r.lane.holder, ""
		if v != nil {
			if own := v.holding(r.store.replica); own != nil {
				text = own.text
			}
		}
		i := slices.IndexFunc(h.flights, func(f flight) bool { return text != "" && f.step.held.text == text })
		switch {
		case i >= 0:
			if sum += amountOf(h.flights[i].step.granted, limit); !h.flights[i].returns {
				sum += h.restOf(limit)
			}
		case text == h.text, h.alive(s.clock(), 0) && !h.returning():
			sum += h.restOf(limit)
		}
	}
	return sum
}

// checkImage requires of an item that what is out on lease is what the slots have, and
// that no limit has more than its capacity, leases included.
func (s *sim) checkImage(v *view) error {
	if v == nil {
		return nil
	}
	for i := range v.balances {
		b := &v.balances[i]
		sum := int64(0)
		for j := range v.leases {
			sum += v.leases[j].of(b.limit.Name)
		}
		if sum != b.leased {
			return fmt.Errorf("limit %s: %d out on lease, %d in the slots: %+v", b.limit.Name, b.leased, sum, v.leases)
		}
		if !s.refund && b.state.Tokens > b.room() {
			return fmt.Errorf("limit %s: %d tokens and %d out on lease, of %d", b.limit.Name, b.state.Tokens, b.leased, b.params.Capacity)
		}
	}
	return nil
}

// checkLeases requires of every holder that it has no more than its slot says.
func (s *sim) checkLeases() error {
	for _, r := range s.replicas {
		h := &r.lane.holder
		slot, ok := parseHolding(r.store.replica, h.text)
		if h.text == "" || s.unlent {
			continue
		}
		if !ok {
			return fmt.Errorf("a holder with a slot of %q", h.text)
		}
		for _, p := range h.stocks {
			if p.rest < 0 || p.rest+p.reported > p.quantity || p.quantity != slot.of(p.limit) {
				return fmt.Errorf("a holder has %+v of %+v", p, slot)
			}
		}
	}
	return nil
}
