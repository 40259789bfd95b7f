package embedded

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// surplus appends the usage that a bucket counts beyond that of another with the same names.
func surplus(rows []usageRow, b, other *bucket) []usageRow {
	b.consumption(func(c consumed) {
		if other != nil {
			other.consumption(func(o consumed) {
				if o.hour == c.hour && o.limit == c.limit {
					c.amount -= o.amount
				}
			})
		}
		if c.amount > 0 {
			rows = append(rows, usageRow{consumed: c, namespace: b.namespace.Value(), entity: b.entity, resource: b.resource.Value()})
		}
	})
	return rows
}

// lower reduces each balance of a bucket to that of another, with the greater use of the two. It
// reports whether that changed anything; if so, the file must have it before the next take. carry
// says that the other's limits were replaced by those of this bucket, which may have raised them.
// Without carry a raise adds nothing. The shard must be locked.
func (b *bucket) lower(to *bucket, carry bool, now int64) (lowered bool) {
	if !b.contents.lower(&to.contents, carry, now) {
		return false
	}
	if b.block == nil {
		b.block = newBlock(b.limits, now)
		b.block.stored = true
	}
	b.block.replaceLimits(b.limits, b.limits)
	return true
}

// lower is bucket.lower without a block.
func (c *contents) lower(to *contents, carry bool, now int64) (lowered bool) {
	lower := func(l limiter.Limit, t *tokenbucket.Bucket) {
		p := l.Params()
		is, most, under := t.Refill(p, now), to.carry(l, now), p
		if was, has, ok := to.held(l.Name); ok && !carry {
			most, under = has.Refill(was.Params(), now), was.Params()
		}
		tokens := min(is.Tokens, most.Tokens)
		if extra := tokens - p.Capacity; extra > 0 {
			if tokens < is.Tokens {
				*t, lowered = tokenbucket.Bucket{Tokens: tokens, Refilled: is.Refilled, Carried: -extra}, true
			}
			return
		}
		use := max(is.Use(p, now), most.Use(under, now), p.Capacity-tokens)
		if p.Amount == 0 && under.Amount == 0 {
			tokens = max(p.Capacity-use, -tokenbucket.MaxAmount) // as Reparameterize does
		}
		if carried := tokens + use - p.Capacity; tokens < is.Tokens || carried > is.Carried {
			*t = tokenbucket.Bucket{Tokens: tokens, Refilled: is.Refilled, Carried: min(carried, tokenbucket.MaxCapacity)}
			lowered = true
		}
	}
	var known []string
	for i := range c.limits.Len() {
		if l := c.limits.At(i); !l.Unlimited {
			lower(l, c.balance(i))
			known = append(known, l.Name)
		}
	}
	if c.rest != nil {
		for i := range c.rest.dormant {
			d := &c.rest.dormant[i]
			lower(d.limit, &d.bucket)
			known = append(known, d.limit.Name)
		}
	}
	return c.keepOthers(to, known, now) || lowered
}

// keepOthers adds, as dormant, the balances of another bucket that have use and whose limits have
// none of these names. It adds the other's forgotten limits too.
func (c *contents) keepOthers(of *contents, names []string, now int64) (kept bool) {
	var all []dormant
	var f forgotten
	if c.rest != nil {
		all, f = c.rest.dormant, c.rest.forgotten
	}
	keep := func(l limiter.Limit, t tokenbucket.Bucket) {
		if !l.Unlimited && !slices.Contains(names, l.Name) && !t.Unused(l.Params(), now) {
			all, kept = append(all, dormant{limit: l, bucket: t}), true
		}
	}
	for i := range of.limits.Len() {
		keep(of.limits.At(i), *of.balance(i))
	}
	if of.rest != nil {
		for _, d := range of.rest.dormant {
			keep(d.limit, d.bucket)
		}
		if was := f; of.rest.forgotten.lasts(now) {
			f = f.with(of.rest.forgotten)
			kept = kept || f != was
		}
	}
	if kept {
		c.remember(all, f, now)
	}
	return kept
}
