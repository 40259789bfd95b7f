package plan

import (
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// under returns a state under other limits, see limiter.Op, as of now. It has no leases. The
// refill that was due is added under the old numbers. Remainders are dropped, and the use is
// carried over. A limit that is gone stays dormant while it has use.
func under(b *schema.Bucket, to *limiter.Limits, generation uint64, now int64) *schema.Bucket {
	next := *b
	next.Version = schema.Version{Generation: generation, Hash: to.Hash()}
	next.Limits, next.Pending = to, 0
	next.Balances, next.Free = nil, nil
	for i := range to.Len() {
		if l := to.At(i); l.Unlimited {
			next.Free = append(next.Free, l.Name)
		} else {
			next.Balances = append(next.Balances, carry(b, l, now))
		}
	}
	for i := range b.Balances {
		old := b.Balances[i]
		if j := to.Find(old.Limit.Name); j >= 0 && !to.Unlimited(j) {
			continue // carried
		}
		old.Dormant = true
		if b.Shard.Moving {
			half := otherHalf(b, &old, now)
			old.Moving, old.Aside = half.Tokens, half.Carried
		}
		next.Balances = append(next.Balances, old)
	}
	if b.Shard.Moving {
		next.MovedAt = now // rule: tokens that move are refilled under the old limits
	}
	schema.SortBalances(next.Balances)
	forget(&next, now)
	return &next
}

// carry returns the balance that a state has for a limit under new numbers.
func carry(b *schema.Bucket, to limiter.Limit, now int64) schema.Balance {
	next := b.Shard.NewBalance(to, now)
	other := apart(b, next.Whole)
	old := b.Any(to.Name)
	switch {
	case old != nil:
		setBucket(&next, bucketAt(old, now).Reparameterize(Params(old, schema.WholeLine()), Params(&next, schema.WholeLine()), now))
		if b.Shard.Moving {
			half := otherHalf(b, old, now).Reparameterize(apart(b, old.Whole), other, now)
			next.Moving, next.Aside = half.Tokens, half.Carried
		}
	case b.Lasts(now):
		setBucket(&next, tokenbucket.Empty(next.Share, b.Use, now)) // it may have been forgotten with use
		if b.Shard.Moving {
			next.Aside = tokenbucket.Empty(other, b.Use, now).Carried
		}
	default:
		next.Moving = other.Capacity
	}
	return next
}

// bucketAt returns a limit at now, on the line of an item without leases.
func bucketAt(b *schema.Balance, now int64) tokenbucket.Bucket {
	m := newMeter(b, schema.WholeLine(), now)
	return m.bucket(m.fill(number{b.FullAt, b.Carried}))
}

// setBucket has a limit have a balance at the time of its last refill, on the line of an
// item without leases. The remainder of the balance is in units.
func setBucket(b *schema.Balance, to tokenbucket.Bucket) {
	m := newMeter(b, schema.WholeLine(), to.Refilled)
	n := m.number(to)
	b.FullAt, b.Carried = n.v, n.carried
}

// apart returns the share of a limit that the other half of a split will have; none where no
// half is to be made.
func apart(b *schema.Bucket, whole tokenbucket.Params) tokenbucket.Params {
	if !b.Shard.Moving {
		return tokenbucket.Params{}
	}
	other := b.Shard.Other()
	return other.Share(whole)
}

// otherHalf returns the balance of a limit that the other half of a split has at now.
func otherHalf(b *schema.Bucket, of *schema.Balance, now int64) tokenbucket.Bucket {
	half := tokenbucket.Bucket{Tokens: of.Moving, Carried: of.Aside, Refilled: b.MovedAt}
	return half.Refill(apart(b, of.Whole), now)
}

// unused reports whether a limit of a state is as good as one that it never held.
func unused(b *schema.Bucket, of *schema.Balance, now int64) bool {
	if !bucketAt(of, now).Unused(Params(of, schema.WholeLine()), now) {
		return false
	}
	return !b.Shard.Moving || otherHalf(b, of, now).Unused(apart(b, of.Whole), now)
}
