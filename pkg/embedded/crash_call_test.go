package embedded

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// tenant is a bucket, and the limits that it may be under.
type tenant struct {
	key        limiter.BucketKey
	sets       []*limiter.Limits
	now        int // which of sets
	generation uint64
	taken      bool // whether any token was taken since the store last had no bucket

	under   uint64 // hash of the limits that the bucket is under
	since   uint64 // generation of the change to them
	changed bool   // whether they changed in this run
	given   bool   // whether any token was taken under them in this run
}

// see records the limits of the bucket; nil is none.
func (tn *tenant) see(b *bucket) {
	if b == nil {
		tn.under, tn.changed, tn.given = 0, false, false
	} else if hash := b.limits.Hash(); hash != tn.under {
		tn.under, tn.since, tn.changed, tn.given = hash, b.generation, tn.under != 0, false
	}
}

// newTenant draws limits from those that are worth a test: tiny, huge, slow, fast,
// refilled by odd fractions, without debt, and none.
func newTenant(t *testing.T, r *rand.Rand, i int) *tenant {
	t.Helper()
	pool := []limiter.Limit{
		limiter.PerSecond("a", 100), limiter.PerSecond("a", 1), limiter.Custom("a", 50, 7, 3*time.Second).WithMaxDebt(20),
		limiter.PerMinute("b", 1_000_000_000), limiter.Custom("b", 300, 0, time.Second), limiter.Unlimited("b"), // the second one never refills
		limiter.PerSecond("c", 900).WithMaxDebt(limiter.NoDebt), limiter.Custom("c", 1, 3, 7*time.Second), limiter.PerDay("c", limiter.MaxTokens),
	}
	tn := &tenant{key: limiter.BucketKey{Namespace: "default", Entity: string(rune('a' + i)), Resource: "r", Variant: uint64(i % 2)}, generation: 1}
	for range 3 {
		var set []limiter.Limit
		for kind := range 3 {
			if kind == i%3 || r.IntN(2) == 0 {
				set = append(set, pool[3*kind+r.IntN(3)])
			}
		}
		tn.sets = append(tn.sets, limitsOf(t, set...))
	}
	return tn
}

func (tn *tenant) change(r *rand.Rand) {
	tn.now = r.IntN(len(tn.sets))
	tn.generation++
}

// op draws an op on the bucket.
func (tn *tenant) op(r *rand.Rand) limiter.Op {
	limits := tn.sets[tn.now]
	op := limiter.Op{Bucket: tn.key, Limits: limits, Generation: tn.generation}
	for i := range limits.Len() {
		if r.IntN(3) > 0 {
			op.Spends = append(op.Spends, spendOf(r, limits.At(i)))
		}
	}
	if len(op.Spends) == 0 {
		op.Spends = append(op.Spends, limiter.Spend{Limit: "other", Take: 1}) // a limit that the bucket does not have
	}
	return op
}

func spendOf(r *rand.Rand, l limiter.Limit) limiter.Spend {
	capacity := max(l.Capacity, 1) * limiter.Milli
	amount := func() int64 {
		return 1 + r.Int64N([]int64{capacity/100 + 1, capacity/10 + 1, capacity + capacity/8}[min(r.IntN(12)/5, 2)])
	}
	sp := limiter.Spend{Limit: l.Name}
	switch n := r.IntN(20); {
	case n < 11:
		sp.Take = amount()
	case n < 12:
		sp.Look = true
	case n < 14:
		sp.Charge = amount()
	case n < 15:
		sp.Charge = 4 * amount()
	case n < 18:
		sp.Refund = amount()
	default:
		sp.Take, sp.Charge, sp.Refund = amount()/2, amount()/2, amount()/2
	}
	return sp
}

// caller is a caller, with a call under way or none.
type caller struct {
	ops    []limiter.Op
	wait   *batch
	booked bool // and waits until the file has it
}

// call moves a caller on: it draws a call, tries it, waits, or gives up.
func (w *world) call(c *caller) {
	if c.ops == nil && c.wait == nil {
		for _, i := range w.r.Perm(len(w.tenants))[:max(w.r.IntN(6)-2, 1)] {
			c.ops = append(c.ops, w.tenants[i].op(w.r))
		}
	}
	if c.wait != nil {
		select {
		case <-c.wait.done:
			failed := c.wait.err != nil
			c.wait = nil
			if failed || c.booked {
				*c = caller{}
				return
			}
		default:
			if w.r.IntN(50) == 0 {
				*c = caller{} // its time is over
			}
			return
		}
	}
	w.try(c)
}

// try makes the call, and has the reference store give the same tokens.
func (w *world) try(c *caller) {
	late := int64(0)
	if w.r.IntN(4) == 0 {
		late = w.r.Int64N([]int64{50, 2000, hourMs}[w.r.IntN(3)])
	}
	for i := range c.ops {
		w.prepare(&c.ops[i])
	}
	now := w.clock() - late
	t, err := w.ways.take(w.store, now, c.ops)
	if err != nil {
		w.fatalf("taking: %v", err)
	}
	for i := range c.ops {
		w.tenant(&c.ops[i].Bucket).see(bucketOf(w.store, &c.ops[i].Bucket))
	}
	if !t.done {
		w.counts["waited"]++
		w.follow(now, c.ops)
		c.wait = t.wait
		return
	}
	if t.admitted {
		w.counts["admitted"]++
		w.compare(c.ops, w.mirror(now, c.ops, func(*limiter.Spend) {}))
	} else {
		w.counts["denied"]++
		w.compare(c.ops, w.mirror(now, c.ops, func(sp *limiter.Spend) { sp.Take, sp.Look = 0, false }))
	}
	for i := range c.ops {
		w.tally(&c.ops[i], t.admitted)
	}
	if t.wait != nil {
		w.counts["waited after the decision"]++
	}
	w.noteRefunds(c.ops, t.wait)
	*c = caller{wait: t.wait, booked: t.wait != nil}
}

// prepare prepares the reference store for an op. If the store has no bucket, the reference's must
// have been full.
func (w *world) prepare(op *limiter.Op) {
	if b := bucketOf(w.store, &op.Bucket); b != nil {
		if bucketOf(w.reference, &op.Bucket) == nil {
			w.resync(b) // the reference's is full, and may have the tokens of this one
		}
		return
	}
	tn := w.tenant(&op.Bucket)
	if mirror := bucketOf(w.reference, &op.Bucket); mirror != nil && tn.taken && !mirror.full(w.real) {
		w.fatalf("bucket %s is gone, and was not full: %+v", op.Bucket.Entity, mirror.first)
	}
	w.forget(&op.Bucket)
	tn.taken = false
}

func (w *world) tenant(k *limiter.BucketKey) *tenant {
	return w.tenants[slices.IndexFunc(w.tenants, func(tn *tenant) bool { return tn.key == *k })]
}

// forget removes a bucket from the reference store.
func (w *world) forget(k *limiter.BucketKey) {
	if b := bucketOf(w.reference, k); b != nil {
		hash := w.reference.hash(k)
		w.reference.drop(&w.reference.shards[hash%shardCount], hash, b)
	}
}

// mirror applies the ops to the reference store, with some spends changed. It must admit all.
func (w *world) mirror(now int64, ops []limiter.Op, change func(*limiter.Spend)) []limiter.Op {
	again := make([]limiter.Op, len(ops))
	for i, op := range ops {
		again[i] = op
		again[i].Spends = slices.Clone(op.Spends)
		for j := range again[i].Spends {
			change(&again[i].Spends[j])
		}
	}
	admitted, err := w.reference.Take(w.t.Context(), time.UnixMilli(now-w.skew), again)
	if err != nil || !admitted {
		w.fatalf("more was given than there is: %+v: %v", ops, err)
	}
	return again
}

// follow applies to the reference store the effects of a call that waits: an update of limits, and
// perhaps a refill.
func (w *world) follow(now int64, ops []limiter.Op) {
	for i := range ops {
		b, whole := bucketOf(w.store, &ops[i].Bucket), bucketOf(w.reference, &ops[i].Bucket)
		if whole == nil {
			w.resync(b)
			continue
		}
		whole.applyLimits(ops[i].Limits, ops[i].Generation, now-w.skew)
		for j := range b.limits.Len() {
			if !b.limits.Unlimited(j) {
				*whole.balance(j) = whole.balance(j).Refill(whole.limits.Params(j), b.balance(j).Refilled-w.skew)
			}
		}
	}
}

// compare checks that no balance after a decision is above the reference's.
func (w *world) compare(ops, whole []limiter.Op) {
	for i := range ops {
		for j := range ops[i].Spends {
			got, most := &ops[i].Spends[j], &whole[i].Spends[j]
			if got.Held != most.Held || got.Held && got.Limits.Hash() != most.Limits.Hash() {
				w.fatalf("bucket %s is under other limits than it should be", ops[i].Bucket.Entity)
			}
			if got.Held && got.Charge > 0 && got.Bucket.Tokens == most.Bucket.Tokens { // at the debt floor each has its own remainder
				if b := bucketOf(w.reference, &ops[i].Bucket); b != nil {
					t := b.balance(got.Index)
					t.Remainder = max(t.Remainder, got.Bucket.Remainder)
				}
			}
			if got.Held && got.Bucket.Tokens > most.Bucket.Tokens+1 { // where limits change each drops its own part of a millitoken
				w.fatalf("bucket %s, limit %s: %d left, there are at most %d", ops[i].Bucket.Entity, got.Limit, got.Bucket.Tokens, most.Bucket.Tokens)
			}
		}
	}
}

// tally counts consumption.
func (w *world) tally(op *limiter.Op, admitted bool) {
	tn := w.tenant(&op.Bucket)
	event := int64(0)
	for i := range op.Spends {
		sp := &op.Spends[i]
		if !sp.Held {
			continue
		}
		n := sp.Charge - sp.Refund
		if admitted {
			n += sp.Take
		}
		_, takes := flow(sp, admitted)
		tn.taken, tn.given = tn.taken || sp.Charge > 0 || takes > 0, tn.given || takes > 0
		w.used[op.Bucket.Entity+"/"+sp.Limit] += n
		if n != 0 {
			event = 1
		}
	}
	w.used[op.Bucket.Entity+"/"+eventsLimit] += event
}

// refund is a refund to a limit that a crash may lose.
type refund struct {
	batch  *batch // that the answer waits for; nil = none, and it was answered
	limit  string // entity and limit
	amount int64
}

// noteRefunds records the refunds of a call that the file need not have. These are refunds whose
// answer waits, refunds after the file accepts no writes, and refunds to a full bucket without a
// record.
func (w *world) noteRefunds(ops []limiter.Op, n *batch) {
	for i := range ops {
		until := n
		if b := bucketOf(w.store, &ops[i].Bucket); b == nil || !b.block.stored || w.dead {
			until = nil
		} else if n == nil {
			continue
		}
		for _, sp := range ops[i].Spends {
			if give := sp.Refund - sp.Charge; sp.Held && give > 0 {
				w.refunds = append(w.refunds, refund{until, ops[i].Bucket.Entity + "/" + sp.Limit, give})
			}
		}
	}
}

// openRefunds returns the sum of a limit's refunds that the file need not have.
func (w *world) openRefunds(limit string) int64 {
	var sum int64
	for _, g := range w.refunds {
		if g.limit == limit && (g.batch == nil || !g.batch.written()) {
			sum += g.amount
		}
	}
	return sum
}

// written reports whether a batch is in the file for certain.
func (n *batch) written() bool {
	select {
	case <-n.done:
		return n.err == nil
	default:
		return false
	}
}
