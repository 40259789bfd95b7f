package dynamo

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// adopt returns the bucket under other limits, see limiter.Op: what was due is
// refilled under the old ones, remainders are dropped, and balances are cut to the
// new capacities. A limit that is gone stays dormant until it would be full, so that
// only one that the item does not hold starts full.
func (v *view) adopt(to *limiter.Limits, generation uint64, now int64) *view {
	now = v.at(now)
	next := &view{version: version{generation, to.Hash()}, shard: v.shard, refilled: now, taken: v.taken, slots: v.slots, leases: v.leases, limits: to}
	for i := range to.Len() {
		if l := to.At(i); l.Unlimited {
			next.free = append(next.free, l.Name)
		} else {
			next.balances = append(next.balances, v.carry(to, i, now))
		}
	}
	for i := range v.balances {
		b := v.balances[i]
		if j := to.Find(b.limit.Name); j >= 0 && !to.Unlimited(j) {
			continue // carried
		}
		if at := refilled(&b, max(now, b.state.Refilled)); at.tokens < b.room() {
			b.state = tokenbucket.Bucket{Tokens: at.tokens, Remainder: at.remainder, Refilled: max(now, b.state.Refilled)}
		} else if b.leased == 0 && b.moving == v.apart(b.whole) {
			continue // as good as never held
		} else {
			b.state = tokenbucket.Bucket{Tokens: b.room(), Refilled: max(now, b.state.Refilled)}
		}
		b.dormant = true
		next.balances = append(next.balances, b)
	}
	sortBalances(next.balances)
	return next
}

// carry returns the balance that the item has for the i-th of other limits.
func (v *view) carry(to *limiter.Limits, i int, now int64) balance {
	next := v.shard.newBalance(to, i, now)
	next.moving = v.apart(next.whole)
	k := slices.IndexFunc(v.balances, func(b balance) bool { return b.limit.Name == next.limit.Name })
	if k < 0 {
		return next
	}
	old := &v.balances[k]
	next.leased, next.lease = old.leased, old.lease
	next.moving = min(old.moving, next.moving)
	at := refilled(old, max(now, old.state.Refilled))
	if old.dormant && at.tokens >= old.room() {
		next.state.Tokens = next.room()
		return next
	}
	next.state.Tokens = min(at.tokens, next.room())
	return next
}

// apart returns the share of a limit that the other half of a split will have, as
// long as it is not made.
func (v *view) apart(whole tokenbucket.Params) int64 {
	if !v.shard.moving {
		return 0
	}
	other := v.shard.other()
	return other.share(whole).Capacity
}
