package storetest

import (
	"math/big"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// refBuckets are the buckets of the store. Its mutex protects them.
type refBuckets map[limiter.BucketKey]*refBucket

// refBucket is a bucket and all its limits, also the dormant ones, which limits does not have, or
// has as unlimited.
type refBucket struct {
	limits     *limiter.Limits
	generation uint64
	held       map[string]*refBalance // by name
}

// refBalance is one exact token bucket: the tokens are millitokens and parts of one.
type refBalance struct {
	limit   limiter.Limit
	tokens  *big.Rat
	use     *big.Rat // that refill has yet to make up for
	at      int64    // time of both, Unix milliseconds
	dormant bool
}

// open returns the op's bucket, with the op's limits if they are newer.
func (all refBuckets) open(op *limiter.Op, now int64) *refBucket {
	b, ok := all[op.Bucket]
	if !ok {
		b = &refBucket{limits: &limiter.Limits{}, held: make(map[string]*refBalance)}
		b.apply(op.Limits, op.Generation, now)
		all[cloneKey(op.Bucket)] = b
		return b
	}
	switch hash := b.limits.Hash(); {
	case hash == op.Limits.Hash():
		b.generation = max(b.generation, op.Generation)
	case op.Generation > b.generation, op.Generation == b.generation && op.Limits.Hash() > hash:
		b.apply(op.Limits, op.Generation, now)
	}
	return b
}

// apply applies limits to the bucket.
func (b *refBucket) apply(limits *limiter.Limits, generation uint64, now int64) {
	b.limits, b.generation = limits, generation
	wanted := make(map[string]limiter.Limit)
	for i := range limits.Len() {
		if l := limits.At(i); !l.Unlimited {
			wanted[l.Name] = l
		}
	}
	for name, t := range b.held {
		t.refill(now)
		l, ok := wanted[name]
		if (t.dormant || !ok) && t.unused() {
			delete(b.held, name) // as if it never existed
			continue
		}
		t.dormant = !ok
		if ok {
			t.reparameterize(l)
			delete(wanted, name)
		}
	}
	for name, l := range wanted {
		b.held[name] = &refBalance{limit: l, tokens: milli(l.Capacity), use: new(big.Rat), at: now}
	}
}

// idle returns the version of a bucket's limits, and whether all its limits are full at now: then
// it is the same as no bucket.
func (all refBuckets) idle(key limiter.BucketKey, now int64) (version, bool) {
	b, ok := all[key]
	if !ok {
		return version{}, false
	}
	for _, t := range b.held {
		t.refill(now)
		if !t.unused() {
			return version{}, false
		}
	}
	return version{b.limits, b.generation}, true
}

// prepare refills, applies the refund of the spend, and reports whether the balance meets its need.
func (b *refBucket) prepare(sp *limiter.Spend, now int64) bool {
	t, ok := b.held[sp.Limit]
	sp.Held, sp.Exceeded = ok && !t.dormant, false
	if !sp.Held {
		return true
	}
	t.refill(now)
	if give := sp.Refund - sp.Charge; give > 0 {
		t.add(new(big.Rat).SetInt64(give))
	}
	need := sp.Take
	if sp.Look {
		need = max(need, limiter.Milli)
	}
	sp.Exceeded = need > 0 && t.tokens.Cmp(new(big.Rat).SetInt64(need)) < 0 // without a need it passes, also in debt
	return !sp.Exceeded
}

// finish takes if the decision admits, charges the net cost, and reports the state.
func (b *refBucket) finish(sp *limiter.Spend, admitted bool) {
	if !sp.Held {
		return
	}
	t := b.held[sp.Limit]
	if admitted {
		t.subtract(new(big.Rat).SetInt64(sp.Take))
	}
	if cost := sp.Charge - sp.Refund; cost > 0 {
		t.charge(cost)
	}
	sp.Limits, sp.Index, sp.Bucket = b.limits, b.limits.Find(sp.Limit), t.state()
}

// refill adds the refill since the last one. Time that runs backwards adds nothing.
func (t *refBalance) refill(now int64) {
	if now > t.at {
		elapsed := new(big.Int).Sub(big.NewInt(now), big.NewInt(t.at))
		due := elapsed.Mul(elapsed, big.NewInt(t.limit.RefillAmount*limiter.Milli))
		t.add(new(big.Rat).SetFrac(due, big.NewInt(t.limit.RefillPeriod.Milliseconds())))
		t.at = now
	}
}

// add adds tokens, up to the capacity, and subtracts them from the use.
func (t *refBalance) add(n *big.Rat) {
	t.tokens.Add(t.tokens, n)
	if t.full() {
		t.tokens = milli(t.limit.Capacity)
	}
	t.use.Sub(t.use, n)
	if t.use.Sign() < 0 {
		t.use = new(big.Rat)
	}
}

// subtract takes tokens, which become use. If refill makes up for use while the balance is full,
// parts of a millitoken remain for the next time.
func (t *refBalance) subtract(n *big.Rat) {
	if t.full() && n.Sign() > 0 {
		t.use = ceil(t.use)
	}
	t.tokens.Sub(t.tokens, n)
	t.use.Add(t.use, n)
}

func (t *refBalance) unused() bool { return t.full() && t.use.Sign() == 0 }

func (t *refBalance) full() bool { return t.tokens.Cmp(milli(t.limit.Capacity)) >= 0 }

// charge subtracts cost from the whole millitokens, down to the debt floor. Parts of a millitoken
// are unfinished refill and are not charged.
func (t *refBalance) charge(cost int64) {
	whole := floor(t.tokens)
	left := new(big.Int).Sub(whole, big.NewInt(cost))
	lowest := big.NewInt(t.limit.DebtFloor())
	if lowest.Cmp(whole) > 0 {
		lowest = whole
	}
	if left.Cmp(lowest) < 0 {
		left = lowest
	}
	t.subtract(new(big.Rat).SetInt(whole.Sub(whole, left)))
}

// reparameterize changes the parameters of a refilled balance. The new balance is the new capacity
// minus the use, up to the capacity. It is not below the old balance, except where neither the old
// limit nor the new one refills.
func (t *refBalance) reparameterize(to limiter.Limit) {
	counts := t.limit.RefillAmount == 0 && to.RefillAmount == 0
	t.limit, t.use = to, ceil(t.use)
	t.tokens = new(big.Rat).SetInt(floor(t.tokens))
	if left := milli(to.Capacity); left.Sub(left, t.use).Cmp(t.tokens) > 0 || counts {
		t.tokens = left
	}
	if t.full() {
		t.tokens = milli(to.Capacity)
	}
}

// state returns the balance as a tokenbucket.Bucket.
func (t *refBalance) state() tokenbucket.Bucket {
	whole, use := floor(t.tokens), ceil(t.use)
	part := new(big.Rat).Sub(t.tokens, new(big.Rat).SetInt(whole))
	if t.full() {
		part.Sub(use, t.use)
	}
	part.Mul(part, new(big.Rat).SetInt64(t.limit.RefillPeriod.Milliseconds()))
	return tokenbucket.Bucket{
		Tokens: whole.Int64(), Remainder: part.Num().Int64(), Refilled: t.at,
		Carried: whole.Int64() + use.Num().Int64() - t.limit.Capacity*limiter.Milli,
	}
}

// balanceOf returns the balance whose state is b.
func balanceOf(l limiter.Limit, b tokenbucket.Bucket) *refBalance {
	part := big.NewRat(b.Remainder, l.RefillPeriod.Milliseconds())
	t := &refBalance{limit: l, tokens: new(big.Rat).SetInt64(b.Tokens), use: new(big.Rat).SetInt64(b.Use(l.Params(), b.Refilled)), at: b.Refilled}
	t.use.Sub(t.use, part)
	if !t.full() {
		t.tokens.Add(t.tokens, part)
	}
	return t
}

// ceil returns the least whole number that is not below x.
func ceil(x *big.Rat) *big.Rat {
	n := floor(new(big.Rat).Neg(x))
	return new(big.Rat).SetInt(n.Neg(n))
}

// floor returns the greatest whole number that is not above x.
func floor(x *big.Rat) *big.Int {
	q, m := new(big.Int), new(big.Int)
	q.DivMod(x.Num(), x.Denom(), m) // Euclidean, and the denominator is above 0: rounds down
	return q
}

func milli(tokens int64) *big.Rat { return new(big.Rat).SetInt64(tokens * limiter.Milli) }

func cloneKey(k limiter.BucketKey) limiter.BucketKey {
	k.Namespace, k.Entity, k.Resource = strings.Clone(k.Namespace), strings.Clone(k.Entity), strings.Clone(k.Resource)
	return k
}
