package dynamo

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// swapInput is a write that puts the bucket under other limits. It changes nothing
// but the very item that was seen.
func swapInput(table string, k schema.Key, id writeID, p *plan) *dynamodb.UpdateItemInput {
	s := p.stage
	old, next := s.swap, s.base
	e := &expression{schema.NewExpression()}
	e.own(id)
	if p.books() {
		e.bookOnce(id, old.booked[id.slot])
	}
	e.pin(old)
	e.Add(schema.AttrUnits, p.units)
	e.Set(schema.AttrVersion, schema.NumberAttribute(next.version.Hash))
	e.Set(schema.AttrGeneration, schema.NumberAttribute(next.version.Generation))
	e.Set(schema.AttrRefilled, schema.NumberAttribute(s.now))
	e.setLastTake(p)
	if ttl := s.ttlNeeded(left); ttl > 0 {
		e.Set(schema.AttrTTL, schema.NumberAttribute(ttl+ttlSlack))
	} else if old.ttl > 0 {
		e.Remove(schema.AttrTTL)
	}
	e.setForgotten(old.forgotten, next.forgotten)
	e.swapBalances(s)
	e.swapFree(old, next)
	return e.Input(table, k)
}

// pin makes the write one on the very item that was seen.
func (e *expression) pin(v *view) {
	e.Require(schema.AttrVersion, "=", schema.NumberAttribute(v.version.Hash))
	e.Require(schema.AttrGeneration, "=", schema.NumberAttribute(v.version.Generation))
	e.Require(schema.AttrEpoch, "=", schema.NumberAttribute(v.shard.Epoch))
	e.Require(schema.AttrRefilled, "=", schema.NumberAttribute(v.refilled))
	if v.shard.Moving { // that ends within an epoch
		e.Require(schema.AttrMoving, "=", schema.NumberAttribute(1))
	}
	for i := range v.balances {
		b := &v.balances[i]
		e.Require(schema.LimitAttr(b.limit.Name, schema.LimitTokens), "=", schema.NumberAttribute(b.state.Tokens))
		e.Require(schema.LimitAttr(b.limit.Name, schema.LimitRemainder), "=", schema.NumberAttribute(b.state.Remainder))
		if b.state.Carried > 0 { // a refund to a full balance lowers it, and nothing else
			e.Require(schema.LimitAttr(b.limit.Name, schema.LimitCarried), "=", schema.NumberAttribute(b.state.Carried))
		}
		e.requireLease(b, "=", b.leased)
	}
}

// requireDormant pins a limit that the bucket is not under. Its balance changes only with
// its leases and by changes of limits, and these raise the generation. Limits that came and
// went again may leave the same balance, of another capacity.
func (e *expression) requireDormant(v *view, b *balance) {
	e.Require(schema.LimitAttr(b.limit.Name, schema.LimitTokens), "=", schema.NumberAttribute(b.state.Tokens))
	e.Require(schema.LimitAttr(b.limit.Name, schema.LimitDormant), "=", schema.NumberAttribute(1))
	e.Require(schema.LimitAttr(b.limit.Name, schema.LimitRefilled), "=", schema.NumberAttribute(b.state.Refilled))
	e.Require(schema.AttrGeneration, "=", schema.NumberAttribute(v.version.Generation))
}

// swapBalances writes the changes of the limits of the new view, and removes those that
// are not in it.
func (e *expression) swapBalances(s *stage) {
	moving := s.base.shard.Moving
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
		if consumed := schema.LimitAttr(b.limit.Name, schema.LimitConsumed); old == nil {
			e.Set(consumed, schema.NumberAttribute(usage))
		} else {
			e.Add(consumed, usage)
		}
		if b.lease && (old == nil || !old.lease) {
			e.Set(schema.LimitAttr(b.limit.Name, schema.LimitLeased), schema.NumberAttribute(b.leased))
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
			e.Set(schema.LimitAttr(limit, n.attr), schema.NumberAttribute(n.value))
		}
	}
	for _, n := range had {
		if !slices.ContainsFunc(has, func(m limitNumber) bool { return m.attr == n.attr }) {
			e.Remove(schema.LimitAttr(limit, n.attr))
		}
	}
}

// swapFree writes which limits are unlimited.
func (e *expression) swapFree(old, next *view) {
	for _, name := range next.free {
		e.Set(schema.LimitAttr(name, schema.LimitUnlimited), schema.NumberAttribute(1))
	}
	for _, name := range old.free {
		if i := next.limits.Find(name); i < 0 || !next.limits.Unlimited(i) {
			e.Remove(schema.LimitAttr(name, schema.LimitUnlimited))
		}
	}
}

// setForgotten writes the stand-in of limits that were forgotten.
func (e *expression) setForgotten(was, is forgotten) {
	switch is {
	case was:
	case forgotten{}:
		e.Remove(schema.AttrForgotten)
		e.Remove(schema.AttrUseBefore)
	default:
		e.Set(schema.AttrForgotten, schema.NumberAttribute(is.until))
		e.Set(schema.AttrUseBefore, schema.NumberAttribute(is.use))
	}
}

// forget drops the dormant limits that have no use any more. None of these can be out on
// lease.
func (e *expression) forget(s *stage) {
	v := s.base
	if v.shard.Moving {
		return // both halves must have the same limits
	}
	for i := range v.balances {
		if b := &v.balances[i]; b.dormant && v.unused(b, s.now) {
			e.requireDormant(v, b)
			e.removeBalance(b, false)
		}
	}
	if v.use > 0 && !v.lasts(s.now) {
		e.Require(schema.AttrForgotten, "=", schema.NumberAttribute(v.until))
		e.setForgotten(v.forgotten, forgotten{})
	}
}

// removeBalance removes a limit from the item.
func (e *expression) removeBalance(b *balance, moving bool) {
	for _, n := range balanceNumbers(b, moving) {
		e.Remove(schema.LimitAttr(b.limit.Name, n.attr))
	}
	e.Remove(schema.LimitAttr(b.limit.Name, schema.LimitConsumed))
	if b.lease {
		e.Remove(schema.LimitAttr(b.limit.Name, schema.LimitLeased))
	}
}
