package dynamo

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// Leases change only by writes that also refill: rf is pinned and moved to now, h is
// pinned for every limit whose h changes, and each slot that changes is pinned by its
// text. So what such a write does to leases is done once, and a copy that arrives
// late is refused: the text has changed, and never comes back.
//
// In the write's stage the order is
//
//	refill   under the h that was seen: what leases hold keeps its place in the capacity
//	close    own lease: what was spent is reported (h falls, tokens stay), what goes
//	         back is returned (h falls, tokens rise); leases of the dead: all spent
//	requests with the room that there is now
//	grant    tokens fall, h rises by as much
//
// so that tokens and h together are never above the capacity, and what holders can
// still give never above h.

// leaseAsk is what a lane wants done to leases by its next write, set on its
// knowledge before each plan. The zero value asks for nothing, and the plan is then
// the same as if there were no leases.
//
// A step is left out of a plan, whose step is then nil: while the clock is doubtful,
// for a bucket without an item, by a write that puts the bucket under other limits
// (save that a return of all of the own lease goes before it, as a write of its own),
// and when own is not what the view has in the slot of the replica.
type leaseAsk struct {
	replica string // whose slot is the own one: the Store's, in every item
	id      string // of the lease that the write leaves; no other of the replica ever has it; without ' '
	// now is the clock at which leases are asked for, Unix ms, not corrected: the time
	// of a write that no request brings a time for. 0 = that of the requests so far.
	now int64
	// forced has a write be made for the step, also without requests, and be a refill.
	// Without, the step is done only by a write that is a refill for its requests.
	forced bool
	own    *ownLease // what the lane holds, and does with it; nil = it holds nothing
	// dead are holdings of other replicas to be freed, all of them counted as spent.
	// One whose text is not that of the view any more is left alone.
	dead []holding
	// size says how much is to be granted, given the millitokens that each limit that
	// is not dormant has after the requests of the write (below 0: it is in debt), in
	// order of the limits' names; in the same order, or nil for nothing. More than
	// there is is not granted. nil = nothing. It is not called when own is nil and the
	// view still has a slot of the replica.
	size func(left []amount) []amount
}

// ownLease is what the holder of a lease reports and returns of it. A holder that
// returns what is left serves nothing from it from before the plan is made, until
// the write is known not to have been applied and its slot has another text. One that
// only reports serves on, from what it does not return.
type ownLease struct {
	text  string   // of the slot: that of the step that granted it
	spent []amount // served from the lease and not yet reported, by limit
	back  []amount // returned, by limit; with what is spent at most what the slot has
}

// leaseStep is what a plan's write does to leases, once it is applied: then the own
// slot has the text of held. As long as it is unknown whether it was applied, the
// holder may neither count on what is granted nor on what was returned; an image
// whose own slot has held's text says that it was, see ownLease for the rest.
type leaseStep struct {
	replica string
	seen    string    // text of the own slot that the write rests on; "" = there is none
	held    holding   // the own lease after the write; without text = none
	granted []amount  // of what held has: new, by limit, each above 0
	dead    []holding // freed
	own     bool      // it rests on the own slot, and changes it
	spent   bool      // something was spent of the own lease
}

// ends reports whether the holder gives up all of its lease.
func (a *leaseAsk) ends() bool {
	if a.own == nil {
		return false
	}
	h, ok := parseHolding(a.replica, a.own.text)
	return ok && len(a.own.left(&h)) == 0
}

// left returns what a lease has besides what is spent and what goes back.
func (o *ownLease) left(h *holding) []amount {
	var left []amount
	for _, a := range h.amounts {
		if n := a.tokens - amountOf(o.spent, a.limit) - amountOf(o.back, a.limit); n != 0 {
			left = append(left, amount{a.limit, n})
		}
	}
	return left
}

// fits reports whether a slot is that of the lease, and has all that is spent and
// goes back.
func (o *ownLease) fits(h *holding) bool {
	if h == nil || h.text != o.text {
		return false
	}
	for _, all := range [...][]amount{o.spent, o.back} {
		for _, a := range all {
			if a.tokens < 0 || a.tokens > h.of(a.limit) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(o.left(h), func(a amount) bool { return a.tokens < 0 })
}

// step returns what the next write can do to leases, nothing done yet; nil = nothing.
func (k *knowledge) step() *leaseStep {
	a := &k.lease
	if k.view == nil || k.clock.Doubtful || a.replica == "" || a.id == "" || strings.Contains(a.id, " ") {
		return nil
	}
	step, seen := &leaseStep{replica: a.replica}, k.view.holding(a.replica)
	if seen != nil {
		step.seen = seen.text
	}
	if a.own != nil && !a.own.fits(seen) {
		return nil
	}
	for _, d := range a.dead {
		if found := k.view.holding(d.replica); found != nil && found.text == d.text && (a.own == nil || d.replica != a.replica) {
			step.dead = append(step.dead, *found)
		}
	}
	return step
}

// returnsLease reports whether the next write returns tokens of the own lease,
// which may then be enough for a request that is not covered by what is stored.
func (k *knowledge) returnsLease() bool {
	a := &k.lease
	if a.own == nil || !a.forced && !a.ends() {
		return false
	}
	return slices.ContainsFunc(a.own.back, func(b amount) bool { return b.tokens > 0 }) && k.step() != nil
}

// carry has the plan's write do the step that the lane asks for, if it can.
func (p *plan) carry(k *knowledge, pending []*request) {
	without := *p
	p.stage, p.actors, p.rest = newStage(k.view, k.moment()), nil, nil
	if !p.close(k) {
		*p = without
		return
	}
	p.fill(pending)
	p.grant(&k.lease)
	if k.lease.own == nil && len(p.step.dead) == 0 && len(p.step.granted) == 0 {
		*p = without
	}
}

// close begins a step: it closes leases, before any request. It reports whether
// there is one.
func (p *plan) close(k *knowledge) bool {
	if p.step = k.step(); p.step == nil {
		return false
	}
	p.stage.step = p.step
	if own := k.lease.own; own != nil {
		p.step.own = true
		for _, a := range own.spent {
			p.stage.report(a, true)
			p.step.spent = p.step.spent || a.tokens > 0
		}
		for _, a := range own.back {
			p.stage.lease(a.limit).giveBack(a.tokens)
		}
		p.step.held = newHolding(k.lease.replica, k.lease.id, own.left(k.view.holding(k.lease.replica)))
	}
	for i := range p.step.dead {
		for _, a := range p.step.dead[i].amounts {
			p.stage.report(a, false)
		}
	}
	return true
}

// grant ends a step: what the requests have left is what can be granted.
func (p *plan) grant(a *leaseAsk) {
	if a.size == nil || a.own == nil && p.step.seen != "" {
		return
	}
	s := p.stage
	left := make([]amount, len(s.balances))
	for i := range s.balances {
		left[i] = amount{s.balances[i].limit.Name, s.balances[i].tokens}
	}
	for _, wanted := range a.size(slices.Clone(left)) {
		b := s.find(wanted.limit)
		if b == nil {
			continue
		}
		if n := min(wanted.tokens, b.tokens); n > 0 {
			b.grant(n)
			p.step.granted = append(p.step.granted, amount{wanted.limit, n})
		}
	}
	held := slices.Clone(p.step.held.amounts)
	for _, g := range p.step.granted {
		if i := slices.IndexFunc(held, func(h amount) bool { return h.limit == g.limit }); i >= 0 {
			held[i].tokens += g.tokens
		} else {
			held = append(held, g)
		}
	}
	p.step.held = newHolding(a.replica, a.id, held)
	p.step.own = p.step.own || len(p.step.granted) > 0
}

// report counts what a lease held as spent. What the own lease has spent is usage;
// how much the dead spent of theirs nobody knows.
func (s *stage) report(a amount, counted bool) {
	b := s.lease(a.limit)
	if b == nil || a.tokens == 0 {
		return
	}
	b.leaves()
	b.pinned, b.lowered = true, true
	b.lent -= a.tokens
	if counted {
		b.usage += a.tokens
	}
}

// lease returns the limit of a lease, which may be dormant by now.
func (s *stage) lease(limit string) *staged {
	if b := s.find(limit); b != nil {
		return b
	}
	for i := range s.dormant {
		if s.dormant[i].limit.Name == limit {
			return &s.dormant[i]
		}
	}
	b := s.base.any(limit)
	if b == nil {
		return nil
	}
	s.dormant = append(s.dormant, refilled(b, max(s.now, b.state.Refilled)))
	return &s.dormant[len(s.dormant)-1]
}

// giveBack has n tokens of a lease in the balance again: the room grows by as many.
func (s *staged) giveBack(n int64) {
	if s == nil || n == 0 {
		return
	}
	s.pinned = true
	s.lent -= n
	s.tokens += n
	s.delta += n
}

// grant moves n tokens that are there out on lease.
func (s *staged) grant(n int64) {
	s.pinned = true
	s.need(n)
	s.take(n)
	s.lent += n
	s.granted += n
}

// changeLeases writes what a plan does to leases.
func (e *expression) changeLeases(s *stage) {
	for i := range s.balances {
		b := &s.balances[i]
		e.Add(schema.LimitAttr(b.limit.Name, schema.LimitLeased), b.lent-b.leased)
	}
	for i := range s.dormant {
		e.closeDormant(s.base, &s.dormant[i], s.now)
	}
	step := s.step
	for i := range step.dead {
		attr := holdingAttr(step.dead[i].replica)
		e.Require(attr, "=", &types.AttributeValueMemberS{Value: step.dead[i].text})
		e.Remove(attr)
	}
	attr := holdingAttr(step.replica)
	switch {
	case step.own && step.seen != "":
		e.Require(attr, "=", &types.AttributeValueMemberS{Value: step.seen})
	case step.own:
		e.RequireAbsent(attr)
	default:
		return
	}
	if step.held.text == "" {
		e.Remove(attr)
	} else {
		e.Set(attr, &types.AttributeValueMemberS{Value: step.held.text})
	}
}

// closeDormant writes a limit that the bucket is not under now, and of which leases
// are closed: no other write but a change of limits touches it.
func (e *expression) closeDormant(v *view, b *staged, now int64) {
	attr := func(suffix string) string { return schema.LimitAttr(b.limit.Name, suffix) }
	e.requireDormant(v, b.balance)
	e.Require(attr(schema.LimitRemainder), "=", schema.NumberAttribute(b.state.Remainder))
	e.requireLease(b.balance, "=", b.leased)
	e.Set(attr(schema.LimitTokens), schema.NumberAttribute(b.tokens))
	e.Set(attr(schema.LimitRemainder), schema.NumberAttribute(b.remainder))
	e.Set(attr(schema.LimitRefilled), schema.NumberAttribute(max(now, b.state.Refilled)))
	e.setCarried(b.limit.Name, b.state.Carried, b.carried)
	e.Add(attr(schema.LimitLeased), b.lent-b.leased)
	e.Add(attr(schema.LimitConsumed), b.usage)
}
