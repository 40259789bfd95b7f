package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// forget drops the dormant limits of a state that have no use any more. If too many are left
// it drops the ones with the least time left. The state's balances are its own.
func forget(b *schema.Bucket, now int64) {
	if !b.Lasts(now) {
		b.Forgotten = schema.Forgotten{}
	}
	b.Balances = slices.DeleteFunc(b.Balances, func(of schema.Balance) bool { return of.Dormant && unused(b, &of, now) })
	var dormant []schema.Balance
	for i := range b.Balances {
		if b.Balances[i].Dormant {
			dormant = append(dormant, b.Balances[i])
		}
	}
	extra := len(dormant) - limiter.MaxDormant
	if extra <= 0 {
		return
	}
	slices.SortStableFunc(dormant, func(x, y schema.Balance) int {
		return cmp.Compare(standIn(b, &x, now).Until, standIn(b, &y, now).Until)
	})
	for i := range extra {
		b.Forgotten = b.With(standIn(b, &dormant[i], now))
	}
	b.Balances = slices.DeleteFunc(b.Balances, func(of schema.Balance) bool {
		return of.Dormant && slices.ContainsFunc(dormant[:extra], func(d schema.Balance) bool { return d.Limit.Name == of.Limit.Name })
	})
}

// standIn returns the record that stands for one dormant limit, and for both halves of a split.
func standIn(b *schema.Bucket, of *schema.Balance, now int64) schema.Forgotten {
	one := func(t tokenbucket.Bucket, p tokenbucket.Params) schema.Forgotten {
		wait := t.TimeToUnused(p, now)
		if now > math.MaxInt64-wait {
			return schema.Forgotten{Until: math.MaxInt64, Use: t.Use(p, now)}
		}
		return schema.Forgotten{Until: now + wait, Use: t.Use(p, now)}
	}
	f := one(bucketAt(of, now), Params(of, schema.WholeLine()))
	if b.Shard.Moving {
		f = f.With(one(otherHalf(b, of, now), apart(b, of.Whole)))
	}
	return f
}

// untidy reports whether a state has limits to forget.
func untidy(b *schema.Bucket, now int64) bool {
	if b.Use > 0 && !b.Lasts(now) {
		return true
	}
	return slices.ContainsFunc(b.Balances, func(of schema.Balance) bool { return of.Dormant && unused(b, &of, now) })
}
