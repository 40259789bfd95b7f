package embedded

import (
	"cmp"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// contents are the limits of a bucket and their balances.
type contents struct {
	limits     *limiter.Limits // in force on the bucket
	generation uint64          // of those limits
	window     window          // of quotas
	first      tokenbucket.Bucket
	rest       *rest // nil for a bucket of one limit without dormant or forgotten limits
}

// rest is the part of the contents that only some buckets have.
type rest struct {
	balances  []tokenbucket.Bucket // of the second limit and on
	dormant   []dormant            // limiter.MaxDormant at most
	forgotten forgotten
}

// dormant is the balance of a limit that was removed while it had use. If it were dropped, removing
// a limit and adding it again would fill the bucket.
type dormant struct {
	limit  limiter.Limit
	bucket tokenbucket.Bucket
}

// forgotten sums up dormant limits beyond limiter.MaxDormant, see limiter.Op.
type forgotten struct {
	until int64 // when the last of them has no use, Unix ms
	use   int64 // the greatest at that time, millitokens; 0 = no limit was forgotten
}

// lasts reports whether a limit without a balance may have use at now.
func (f forgotten) lasts(now int64) bool { return f.use > 0 && f.until > now }

// with returns the sum of both.
func (f forgotten) with(g forgotten) forgotten {
	switch {
	case f.use == 0:
		return g
	case g.use == 0:
		return f
	}
	return forgotten{until: max(f.until, g.until), use: max(f.use, g.use)}
}

// balance returns the balance of the i-th limit of b.limits.
func (c *contents) balance(i int) *tokenbucket.Bucket {
	if i == 0 {
		return &c.first
	}
	return &c.rest.balances[i-1]
}

// makeBalances allocates the balances of the limits, if there are none.
func (c *contents) makeBalances() {
	if n := c.limits.Len(); n > 1 {
		c.rest = &rest{balances: make([]tokenbucket.Bucket, n-1)}
	}
}

// more returns the rest of the contents, and allocates it if needed.
func (c *contents) more() *rest {
	if c.rest == nil {
		c.rest = &rest{}
	}
	return c.rest
}

// full reports whether the bucket is full, so that a new one would be the same. That of a window that is
// over counts as full.
func (c *contents) full(now int64) bool {
	if c.window.value().Forgettable(now) {
		return true
	}
	for i := range c.limits.Len() {
		if !c.limits.Unlimited(i) && !c.balance(i).Unused(c.limits.Params(i), now) {
			return false
		}
	}
	if c.rest == nil {
		return true
	}
	for _, d := range c.rest.dormant {
		if !d.bucket.Unused(d.limit.Params(), now) {
			return false
		}
	}
	return !c.rest.forgotten.lasts(now)
}

// idle reports whether the bucket was full at a time and not used since.
func (c *contents) idle(since int64) bool {
	return !c.touched(since) && c.full(since)
}

// touched reports whether the bucket was used after a time.
func (c *contents) touched(since int64) bool {
	for i := range c.limits.Len() {
		if c.balance(i).Refilled > since {
			return true
		}
	}
	return false
}

// applyLimits is bucket.applyLimits without a block. It reports whether the limits changed.
func (c *contents) applyLimits(to *limiter.Limits, generation uint64, now int64) bool {
	from := c.limits
	if from == to || from.Hash() == to.Hash() {
		c.generation = max(c.generation, generation)
		return false
	}
	if generation < c.generation || generation == c.generation && to.Hash() < from.Hash() {
		return false
	}
	old := *c
	*c = contents{limits: to, generation: generation, window: old.window}
	c.makeBalances()
	for i := range to.Len() {
		*c.balance(i) = old.carry(to.At(i), now)
	}
	c.keepDormant(&old, now)
	return true
}

// carry returns the balance that the old bucket has for a limit with new parameters.
func (c *contents) carry(to limiter.Limit, now int64) tokenbucket.Bucket {
	p := to.Params()
	if l, t, ok := c.held(to.Name); ok {
		return t.Reparameterize(l.Params(), p, now)
	}
	return c.unknown(p, now)
}

// held returns the limit of a name and its balance, dormant or not.
func (c *contents) held(name string) (l limiter.Limit, t tokenbucket.Bucket, ok bool) {
	if i := c.limits.Find(name); i >= 0 && !c.limits.Unlimited(i) {
		return c.limits.At(i), *c.balance(i), true
	}
	if c.rest != nil {
		for _, d := range c.rest.dormant {
			if d.limit.Name == name {
				return d.limit, d.bucket, true
			}
		}
	}
	return limiter.Limit{}, tokenbucket.Bucket{}, false
}

// unknown returns the balance of a limit that the bucket does not have. It is full, unless the
// limit may be a forgotten one.
func (c *contents) unknown(p tokenbucket.Params, now int64) tokenbucket.Bucket {
	if c.rest != nil && c.rest.forgotten.lasts(now) {
		return tokenbucket.Empty(p, c.rest.forgotten.use, now)
	}
	return tokenbucket.Full(p, now)
}

// keepDormant retains, as dormant, the balances of old that have use and whose limits are gone.
func (c *contents) keepDormant(old *contents, now int64) {
	var kept []dormant
	keep := func(l limiter.Limit, t tokenbucket.Bucket) {
		if i := c.limits.Find(l.Name); l.Unlimited || i >= 0 && !c.limits.Unlimited(i) {
			return
		}
		t = t.Refill(l.Params(), now)
		if !t.Unused(l.Params(), now) {
			kept = append(kept, dormant{limit: l, bucket: t})
		}
	}
	for i := range old.limits.Len() {
		keep(old.limits.At(i), *old.balance(i))
	}
	var f forgotten
	if old.rest != nil {
		for _, d := range old.rest.dormant {
			keep(d.limit, d.bucket)
		}
		f = old.rest.forgotten
	}
	c.remember(kept, f, now)
}

// remember sets the dormant limits of the bucket, and sums up those beyond limiter.MaxDormant.
func (c *contents) remember(all []dormant, f forgotten, now int64) {
	if !f.lasts(now) {
		f = forgotten{}
	}
	if extra := len(all) - limiter.MaxDormant; extra > 0 {
		slices.SortStableFunc(all, func(x, y dormant) int {
			return cmp.Compare(x.bucket.TimeToUnused(x.limit.Params(), now), y.bucket.TimeToUnused(y.limit.Params(), now))
		})
		for i := range extra {
			p := all[i].limit.Params()
			f = f.with(forgotten{until: limiter.SaturatingSum(now, all[i].bucket.TimeToUnused(p, now)), use: all[i].bucket.Use(p, now)})
		}
		all = slices.Clone(all[extra:])
	}
	if c.rest == nil {
		if len(all) == 0 && f == (forgotten{}) {
			return
		}
		c.rest = &rest{}
	}
	c.rest.dormant, c.rest.forgotten = all, f
}

// forget drops the dormant limits without use.
func (c *contents) forget(now int64) {
	if c.rest == nil {
		return
	}
	c.rest.dormant = slices.DeleteFunc(c.rest.dormant, func(d dormant) bool { return d.bucket.Unused(d.limit.Params(), now) })
	if !c.rest.forgotten.lasts(now) {
		c.rest.forgotten = forgotten{}
	}
}

// finish applies an op: takes if the decision admits, charges always. It sets the new state in op.
func (c *contents) finish(op *limiter.Op, admitted bool) {
	for i := range op.Spends {
		if sp := &op.Spends[i]; sp.Held {
			c.spend(sp, admitted)
		}
	}
}

// spend is finish of one limit. It returns the amount that left the balance.
func (c *contents) spend(sp *limiter.Spend, admitted bool) (took int64) {
	before := sp.Bucket.Tokens
	if admitted {
		sp.Bucket = sp.Bucket.Subtract(c.limits.Params(sp.Index), sp.Take)
	}
	if sp.Charge > sp.Refund {
		c.charge(sp)
	}
	*c.balance(sp.Index) = sp.Bucket
	return before - sp.Bucket.Tokens
}

// charge subtracts the net charge of a spend, down to the debt floor.
func (c *contents) charge(sp *limiter.Spend) {
	tokens := sp.Bucket.Tokens
	floor := min(tokens, c.limits.At(sp.Index).DebtFloor())
	left := max(tokens-(sp.Charge-sp.Refund), floor)
	sp.Bucket = sp.Bucket.Subtract(c.limits.Params(sp.Index), tokens-left)
}
