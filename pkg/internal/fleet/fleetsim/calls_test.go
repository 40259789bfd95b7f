package fleetsim_test

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// taken is the sum that a call was admitted with, and has not refunded.
type taken struct {
	bucket *bucket
	shard  int
	limits []string
	amount int64
}

// call makes a call of a process.
func (f *fleet) call(p *process) {
	switch x := f.r.IntN(100); {
	case (x < 5 || x < 50 && f.on.restless) && f.on.refund && len(f.refundable) > 0:
		f.giveBack(p)
	case x < 12 && f.on.charge:
		b := f.buckets[f.r.IntN(len(f.buckets))]
		op := f.op(p, b)
		for i := range op.Spends {
			op.Spends[i] = limiter.Spend{Limit: op.Spends[i].Limit, Charge: min(f.cost(), b.capacity()/20+1)}
		}
		p.Start(func() { _, _ = f.take(p, []limiter.Op{op}) })
	case x < 15 && f.on.looks:
		op := f.op(p, f.buckets[f.r.IntN(len(f.buckets))])
		for i := range op.Spends {
			op.Spends[i] = limiter.Spend{Limit: op.Spends[i].Limit, Look: true}
		}
		p.Start(func() { _, _ = f.take(p, []limiter.Op{op}) })
	default:
		ops := f.drawTake(p)
		if f.on.pause && ops[0].Spends[0].Take > f.bucket(ops[0].Bucket).capacity()/2 && f.r.IntN(4) == 0 {
			f.after(int64(f.median), func() { p.pause(leaseTerm + f.r.Int64N(second)) }) // its lease is over when the item answers
		}
		p.Start(func() {
			if admitted, err := f.take(p, ops); admitted && err == nil && (f.on.refund || f.on.settle) && (f.on.restless || f.r.IntN(8) == 0) {
				f.keep(ops)
			}
		})
	}
}

// drawTake draws the ops of a call that takes: of one bucket, or of it and its parent's.
func (f *fleet) drawTake(p *process) []limiter.Op {
	n := len(f.buckets)
	buckets := f.buckets[f.r.IntN(n):][:1]
	if f.on.cascade && f.r.IntN(5) > 0 {
		buckets = []*bucket{f.buckets[f.r.IntN(n-1)], f.buckets[n-1]}
	}
	cost := f.cost()
	ops := make([]limiter.Op, 0, len(buckets))
	for _, b := range buckets {
		op := f.op(p, b)
		op.KeepTaken = buckets[0].keep
		if whole := b.capacity(); f.on.large && f.r.IntN(100) == 0 {
			cost = whole/2 + f.r.Int64N(whole/2+1)
		}
		for i := range op.Spends {
			op.Spends[i].Take = cost
		}
		ops = append(ops, op)
	}
	return ops
}

// op returns an op of a bucket as a process last saw it, with spends of nothing: for
// all limits, or for some.
func (f *fleet) op(p *process, b *bucket) limiter.Op {
	limits, generation := p.knows(b)
	op := limiter.Op{Bucket: b.key, Limits: limits, Generation: generation, Lease: b.lease}
	only := limits.Len()
	if f.r.IntN(4) == 0 {
		only = f.r.IntN(limits.Len())
	}
	for i := range limits.Len() {
		if only == limits.Len() || i == only {
			op.Spends = append(op.Spends, limiter.Spend{Limit: limits.At(i).Name})
		}
	}
	return op
}

// patience draws how long a caller waits: as by default, or longer.
func (f *fleet) patience() int64 {
	switch {
	case f.over:
		return 30 * second
	case f.on.impatient:
		return int64(limiter.DefaultTimeout)
	}
	return []int64{15e6, 50e6, 300e6, 2e9}[f.r.IntN(4)]
}

// take calls the engine, as the running task, and has the history take it down.
func (f *fleet) take(p *process, ops []limiter.Op) (admitted bool, err error) {
	c := f.asked(p, ops, f.patience())
	ctx := p.newContext(p.stopped, c.deadline)
	if f.on.leave && !f.over && f.r.IntN(30) == 0 {
		t := f.running
		f.after(f.r.Int64N(10e6), func() {
			if !c.over {
				c.canceled, ctx.canceled = true, true
				t.goOn(t.stops)
			}
		})
	}
	admitted, err = p.engine.Take(ctx, p.moment(), ops)
	if p.ended {
		return false, err
	}
	f.answered(c, admitted, err)
	return admitted, err
}

// keep notes takes that may be refunded later.
func (f *fleet) keep(ops []limiter.Op) {
	op := &ops[f.r.IntN(len(ops))]
	t := taken{bucket: f.bucket(op.Bucket), shard: op.Shard, amount: op.Spends[0].Take}
	for i := range op.Spends {
		if op.Spends[i].Held {
			t.limits = append(t.limits, op.Spends[i].Limit)
		}
	}
	switch {
	case len(t.limits) == 0 || t.amount == 0 || op.Late:
	case f.on.settle && f.r.IntN(2) == 0:
		f.reserve(t)
	default:
		f.refundable = append(f.refundable, t)
	}
}

// giveBack makes a call that refunds a part of an earlier take.
func (f *fleet) giveBack(p *process) {
	i := f.r.IntN(len(f.refundable))
	t := f.refundable[i]
	f.refundable = append(f.refundable[:i], f.refundable[i+1:]...)
	amount := 1 + f.r.Int64N(t.amount)
	limits, generation := p.knows(t.bucket)
	op := limiter.Op{Bucket: t.bucket.key, Limits: limits, Generation: generation, Shard: t.shard}
	for _, limit := range t.limits {
		op.Spends = append(op.Spends, limiter.Spend{Limit: limit, Refund: amount})
	}
	p.Start(func() { _, _ = f.take(p, []limiter.Op{op}) })
}

// ask has a process ask for a number of millitokens of each limit of a bucket, 0 for a
// peek.
func (f *fleet) ask(p *process, b *bucket, n func(capacity int64) int64) *answer {
	limits, generation := p.knows(b)
	op := limiter.Op{Bucket: b.key, Limits: limits, Generation: generation, Lease: b.lease}
	for i := range limits.Len() {
		take := n(limits.Params(i).Capacity)
		op.Spends = append(op.Spends, limiter.Spend{Limit: limits.At(i).Name, Take: take, Look: take == 0})
	}
	a := &answer{}
	p.Start(func() {
		a.admitted, a.err = f.take(p, []limiter.Op{op})
		a.given = true
	})
	return a
}

// answer is the answer to a caller.
type answer struct {
	given    bool
	admitted bool
	err      error
}

// answerTime is how long an answer may take of a bucket that is not asked for otherwise.
const answerTime = 2 * time.Second
