package dynamo

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// swapInput is a write that puts the bucket under other limits. It changes nothing
// but the very item that was seen.
func swapInput(table string, k key, id writeID, p *plan) *dynamodb.UpdateItemInput {
	s := p.stage
	old, next := s.swap, s.base
	e := newExpression()
	e.own(id)
	if p.books() {
		e.bookOnce(id, old.booked[id.slot])
	}
	e.pin(old)
	e.addTo(attrUnits, p.units)
	e.setTo(attrVersion, numberAttribute(next.version.hash))
	e.setTo(attrGeneration, numberAttribute(next.version.generation))
	e.setTo(attrRefilled, numberAttribute(s.now))
	e.setLastTake(p)
	if ttl := s.ttlNeeded(left); ttl > 0 {
		e.setTo(attrTTL, numberAttribute(ttl+ttlSlack))
	} else if old.ttl > 0 {
		e.removeAttr(attrTTL)
	}
	e.setForgotten(old.forgotten, next.forgotten)
	e.swapBalances(s)
	e.swapFree(old, next)
	return e.input(table, k)
}

// pin makes the write one on the very item that was seen.
func (e *expression) pin(v *view) {
	e.require(attrVersion, "=", numberAttribute(v.version.hash))
	e.require(attrGeneration, "=", numberAttribute(v.version.generation))
	e.require(attrEpoch, "=", numberAttribute(v.shard.epoch))
	e.require(attrRefilled, "=", numberAttribute(v.refilled))
	if v.shard.moving { // that ends within an epoch
		e.require(attrMoving, "=", numberAttribute(1))
	}
	for i := range v.balances {
		b := &v.balances[i]
		e.require(limitAttr(b.limit.Name, limitTokens), "=", numberAttribute(b.state.Tokens))
		e.require(limitAttr(b.limit.Name, limitRemainder), "=", numberAttribute(b.state.Remainder))
		if b.state.Carried > 0 { // a refund to a full balance lowers it, and nothing else
			e.require(limitAttr(b.limit.Name, limitCarried), "=", numberAttribute(b.state.Carried))
		}
		e.requireLease(b, "=", b.leased)
	}
}

// requireDormant pins a limit that the bucket is not under. Its balance changes only with
// its leases and by changes of limits, and these raise the generation. Limits that came and
// went again may leave the same balance, of another capacity.
func (e *expression) requireDormant(v *view, b *balance) {
	e.require(limitAttr(b.limit.Name, limitTokens), "=", numberAttribute(b.state.Tokens))
	e.require(limitAttr(b.limit.Name, limitDormant), "=", numberAttribute(1))
	e.require(limitAttr(b.limit.Name, limitRefilled), "=", numberAttribute(b.state.Refilled))
	e.require(attrGeneration, "=", numberAttribute(v.version.generation))
}

// swapBalances writes the changes of the limits of the new view, and removes those that
// are not in it.
func (e *expression) swapBalances(s *stage) {
	moving := s.base.shard.moving
	for i := range s.base.balances {
		b := s.base.balances[i]
		usage := int64(0)
		if st := s.find(b.limit.Name); st != nil {
			b.state = tokenbucket.Bucket{Tokens: st.tokens, Remainder: st.remainder, Refilled: s.now, Carried: st.carried}
			usage = st.usage
		}
		old := s.swap.any(b.limit.Name)
		var had []limitNumber
		if old != nil {
			had = balanceNumbers(old, moving)
		}
		e.replaceNumbers(b.limit.Name, had, balanceNumbers(&b, moving))
		if consumed := limitAttr(b.limit.Name, limitConsumed); old == nil {
			e.setTo(consumed, numberAttribute(usage))
		} else {
			e.addTo(consumed, usage)
		}
		if b.lease && (old == nil || !old.lease) {
			e.setTo(limitAttr(b.limit.Name, limitLeased), numberAttribute(b.leased))
		}
	}
	for i := range s.swap.balances {
		if old := &s.swap.balances[i]; s.base.any(old.limit.Name) == nil {
			e.removeBalance(old, moving)
		}
	}
}

// replaceNumbers has a limit have other numbers than it had.
func (e *expression) replaceNumbers(limit string, had, has []limitNumber) {
	for _, n := range has {
		if !slices.Contains(had, n) {
			e.setTo(limitAttr(limit, n.attr), numberAttribute(n.value))
		}
	}
	for _, n := range had {
		if !slices.ContainsFunc(has, func(m limitNumber) bool { return m.attr == n.attr }) {
			e.removeAttr(limitAttr(limit, n.attr))
		}
	}
}

// swapFree writes which limits are unlimited.
func (e *expression) swapFree(old, next *view) {
	for _, name := range next.free {
		e.setTo(limitAttr(name, limitUnlimited), numberAttribute(1))
	}
	for _, name := range old.free {
		if i := next.limits.Find(name); i < 0 || !next.limits.Unlimited(i) {
			e.removeAttr(limitAttr(name, limitUnlimited))
		}
	}
}

// setForgotten writes the stand-in of limits that were forgotten.
func (e *expression) setForgotten(was, is forgotten) {
	switch is {
	case was:
	case forgotten{}:
		e.removeAttr(attrForgotten)
		e.removeAttr(attrUseBefore)
	default:
		e.setTo(attrForgotten, numberAttribute(is.until))
		e.setTo(attrUseBefore, numberAttribute(is.use))
	}
}

// forget drops the dormant limits that have no use any more. None of these can be out on
// lease.
func (e *expression) forget(s *stage) {
	v := s.base
	if v.shard.moving {
		return // both halves must have the same limits
	}
	for i := range v.balances {
		if b := &v.balances[i]; b.dormant && v.unused(b, s.now) {
			e.requireDormant(v, b)
			e.removeBalance(b, false)
		}
	}
	if v.use > 0 && !v.lasts(s.now) {
		e.require(attrForgotten, "=", numberAttribute(v.until))
		e.setForgotten(v.forgotten, forgotten{})
	}
}

// removeBalance removes a limit from the item.
func (e *expression) removeBalance(b *balance, moving bool) {
	for _, n := range balanceNumbers(b, moving) {
		e.removeAttr(limitAttr(b.limit.Name, n.attr))
	}
	e.removeAttr(limitAttr(b.limit.Name, limitConsumed))
	if b.lease {
		e.removeAttr(limitAttr(b.limit.Name, limitLeased))
	}
}
