package dynamo

import (
	"cmp"
	"math"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// adopt returns the bucket under other limits, see limiter.Op: what was due is
// refilled under the old ones, remainders are dropped, and the use is carried over. A
// limit that is gone stays dormant while it has use, so that only one that the item
// does not hold starts full.
func (v *view) adopt(to *limiter.Limits, generation uint64, now int64) *view {
	now = v.at(now)
	next := &view{version: schema.Version{Generation: generation, Hash: to.Hash()}, shard: v.shard, refilled: now, taken: v.taken, slots: v.slots, booked: v.booked, leases: v.leases, limits: to}
	if v.lasts(now) {
		next.forgotten = v.forgotten
	}
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
		if v.unused(&b, now) {
			continue // as good as never held
		}
		at := refilled(&b, max(now, b.state.Refilled))
		b.state = tokenbucket.Bucket{Tokens: at.tokens, Remainder: at.remainder, Refilled: max(now, b.state.Refilled), Carried: at.carried}
		b.dormant = true
		next.balances = append(next.balances, b)
	}
	next.forget(now)
	return next
}

// unused reports whether a limit of the item that the bucket is not under is as good
// as one that it never held.
func (v *view) unused(b *balance, now int64) bool {
	at := refilled(b, max(now, b.state.Refilled))
	return at.tokens >= b.room() && at.carried == 0 && b.leased == 0 && b.moving == v.apart(b.whole).Capacity && b.aside == 0
}

// carry returns the balance that the item has for the i-th of other limits. Tokens that are
// out on lease count as if they were there.
func (v *view) carry(to *limiter.Limits, i int, now int64) balance {
	next := newBalance(&v.shard, to, i, now)
	other := v.apart(next.whole)
	next.moving = other.Capacity
	k := slices.IndexFunc(v.balances, func(b balance) bool { return b.limit.Name == next.limit.Name })
	if k < 0 {
		v.begin(&next, other, v.leases, now)
		return next
	}
	old := &v.balances[k]
	next.leased, next.lease = old.leased, old.lease
	at := refilled(old, max(now, old.state.Refilled))
	whole := tokenbucket.Bucket{Tokens: at.tokens + old.leased, Carried: at.carried, Refilled: now}
	next.state = whole.Reparameterize(old.params, next.params, now)
	next.state.Tokens -= old.leased
	if v.shard.Moving {
		half := tokenbucket.Bucket{Tokens: old.moving, Carried: old.aside, Refilled: now}
		half = half.Reparameterize(v.apart(old.whole), other, now)
		next.moving, next.aside = half.Tokens, half.Carried
	}
	return next
}

// apart returns the share of a limit that the other half of a split will have, as
// long as it is not made.
func (v *view) apart(whole tokenbucket.Params) tokenbucket.Params {
	if !v.shard.Moving {
		return tokenbucket.Params{}
	}
	other := v.shard.Other()
	return other.Share(whole)
}

// forgotten stands for dormant limits that were too many, see limiter.Op. Of a shard it
// is about the shard's share.
type forgotten struct {
	until int64 // when the last of them would be without use, Unix ms
	use   int64 // the greatest when they were forgotten, in millitokens; 0 = there is none
}

// lasts reports whether a limit of which nothing is known may have use at now.
func (f forgotten) lasts(now int64) bool { return f.use > 0 && f.until > now }

// with returns the one that stands for both.
func (f forgotten) with(g forgotten) forgotten {
	switch {
	case f.use == 0:
		return g
	case g.use == 0:
		return f
	}
	return forgotten{until: max(f.until, g.until), use: max(f.use, g.use)}
}

// begin sets the balance of a limit that the item does not hold. Tokens of it that are
// still out on lease keep their place. One that may have been forgotten with use is empty.
func (f forgotten) begin(b *balance, other tokenbucket.Params, leases []holding, now int64) {
	for i := range leases {
		b.leased += leases[i].of(b.limit.Name)
	}
	b.lease = b.leased > 0
	b.state.Tokens = b.room()
	if !f.lasts(now) {
		return
	}
	b.state = tokenbucket.Empty(b.params, f.use, now)
	b.state.Tokens = min(0, b.room())
	b.moving = 0
	if other.Capacity > 0 {
		b.aside = tokenbucket.Empty(other, f.use, now).Carried
	}
}

// forget drops the dormant limits of a view that are too many, those first that have no
// tokens out on lease, and of these those with the least time left.
func (v *view) forget(now int64) {
	var dormant []balance
	for i := range v.balances {
		if v.balances[i].dormant {
			dormant = append(dormant, v.balances[i])
		}
	}
	if extra := len(dormant) - limiter.MaxDormant; extra > 0 {
		slices.SortStableFunc(dormant, func(x, y balance) int {
			return cmp.Or(cmp.Compare(min(x.leased, 1), min(y.leased, 1)), cmp.Compare(v.forgetOne(&x, now).until, v.forgetOne(&y, now).until))
		})
		for i := range extra {
			v.forgotten = v.with(v.forgetOne(&dormant[i], now))
		}
		v.balances = slices.DeleteFunc(v.balances, func(b balance) bool {
			return b.dormant && slices.ContainsFunc(dormant[:extra], func(d balance) bool { return d.limit.Name == b.limit.Name })
		})
	}
	sortBalances(v.balances)
}

// forgetOne returns the stand-in of one dormant limit, both halves of a split. Tokens
// that are out on lease count as spent.
func (v *view) forgetOne(b *balance, now int64) forgotten {
	one := func(t tokenbucket.Bucket, p tokenbucket.Params) forgotten {
		wait := t.TimeToUnused(p, now)
		if now > math.MaxInt64-wait {
			return forgotten{until: math.MaxInt64, use: t.Use(p, now)}
		}
		return forgotten{until: now + wait, use: t.Use(p, now)}
	}
	f := one(b.state, b.params)
	if v.shard.Moving {
		f = f.with(one(tokenbucket.Bucket{Tokens: b.moving, Carried: b.aside, Refilled: now}, v.apart(b.whole)))
	}
	return f
}
