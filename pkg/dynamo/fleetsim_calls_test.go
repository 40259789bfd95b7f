package dynamo

import (
	"errors"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// taken is what a call was admitted with, and has not given back.
type taken struct {
	bucket *simBucket
	shard  int
	limits []string
	amount int64
}

// call makes a call of a process.
func (f *fleet) call(p *process) {
	switch x := f.r.IntN(100); {
	case (x < 5 || x < 50 && f.restless) && f.refund && len(f.refundable) > 0:
		f.giveBack(p)
	case x < 8 && f.settle:
		p.Start(func() { f.reserve(p) })
	case x < 12 && f.charge:
		b := f.buckets[f.r.IntN(len(f.buckets))]
		op := f.op(p, b)
		for i := range op.Spends {
			op.Spends[i] = limiter.Spend{Limit: op.Spends[i].Limit, Charge: min(f.cost(), b.capacity()/20+1)}
		}
		p.Start(func() { _, _ = f.take(p, []limiter.Op{op}) })
	case x < 15 && f.looks:
		op := f.op(p, f.buckets[f.r.IntN(len(f.buckets))])
		for i := range op.Spends {
			op.Spends[i] = limiter.Spend{Limit: op.Spends[i].Limit, Look: true}
		}
		p.Start(func() { _, _ = f.take(p, []limiter.Op{op}) })
	default:
		ops := f.drawTake(p)
		p.Start(func() {
			if admitted, _ := f.take(p, ops); admitted && f.refund && (f.restless || f.r.IntN(8) == 0) {
				f.keep(ops)
			}
		})
	}
}

// drawTake draws the ops of a call that takes: of one bucket, or of it and its parent's.
func (f *fleet) drawTake(p *process) []limiter.Op {
	n := len(f.buckets)
	buckets := f.buckets[f.r.IntN(n):][:1]
	if f.cascade && f.r.IntN(5) > 0 {
		buckets = []*simBucket{f.buckets[f.r.IntN(n-1)], f.buckets[n-1]}
	}
	cost := f.cost()
	ops := make([]limiter.Op, 0, len(buckets))
	for _, b := range buckets {
		op := f.op(p, b)
		if whole := b.capacity(); f.large && f.r.IntN(100) == 0 {
			cost = whole/2 + f.r.Int64N(whole/2+1)
		}
		for i := range op.Spends {
			op.Spends[i].Take = cost
		}
		ops = append(ops, op)
	}
	return ops
}

// op returns an op of a bucket as a process knows it, with spends of nothing: for all
// limits, or for some.
func (f *fleet) op(p *process, b *simBucket) limiter.Op {
	limits, generation := p.knows(b)
	op := limiter.Op{Bucket: b.site.bucket, Limits: limits, Generation: generation, Lease: b.policy}
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

// take calls the store, as the running task, and has the history take it down.
func (f *fleet) take(p *process, ops []limiter.Op) (admitted bool, err error) {
	c := f.asked(p, ops)
	patience := []int64{15e6, 50e6, 300e6, 2e9}[f.r.IntN(4)]
	if c.books || f.over {
		patience = 30e9
	}
	admitted, err = p.store.Take(f.newContext(p.stopped, f.now+patience), p.moment(), ops)
	if p.ended {
		return false, err
	}
	f.answered(c, admitted, err)
	return admitted, err
}

// keep notes what may be given back later.
func (f *fleet) keep(ops []limiter.Op) {
	op := &ops[f.r.IntN(len(ops))]
	t := taken{bucket: f.bucket(op.Bucket), shard: op.Shard, amount: op.Spends[0].Take}
	for i := range op.Spends {
		if op.Spends[i].Held {
			t.limits = append(t.limits, op.Spends[i].Limit)
		}
	}
	if len(t.limits) > 0 && t.amount > 0 {
		f.refundable = append(f.refundable, t)
	}
}

// giveBack makes a call that gives back some of what an earlier one took.
func (f *fleet) giveBack(p *process) {
	i := f.r.IntN(len(f.refundable))
	t := f.refundable[i]
	f.refundable = append(f.refundable[:i], f.refundable[i+1:]...)
	amount := 1 + f.r.Int64N(t.amount)
	op := f.later(p, t.bucket, t.shard)
	for _, limit := range t.limits {
		op.Spends = append(op.Spends, limiter.Spend{Limit: limit, Refund: amount})
	}
	p.Start(func() { _, _ = f.take(p, []limiter.Op{op}) })
}

// later returns an op of a bucket that goes to where an earlier one went.
func (f *fleet) later(p *process, b *simBucket, shard int) limiter.Op {
	limits, generation := p.knows(b)
	return limiter.Op{Bucket: b.site.bucket, Limits: limits, Generation: generation, Shard: shard}
}

// reserve takes an estimate, and has it settled later, by two processes at about the
// same time.
func (f *fleet) reserve(p *process) {
	ops := f.drawTake(p)
	if admitted, _ := f.take(p, ops); !admitted || p.ended {
		return
	}
	f.reservations++
	mark := limiter.Mark{Namespace: simNamespace, ID: fmt.Sprint("reservation", f.reservations), Expires: p.moment().Add(10 * time.Minute)}
	when := f.now + f.r.Int64N(int64(2*time.Second))
	actual := f.r.Int64N(2*ops[0].Spends[0].Take + 1)
	for try := range 2 {
		f.at(when+int64(try)*f.r.Int64N(20e6), func() {
			by := f.replicas[f.r.IntN(len(f.replicas))].process
			by.Start(func() {
				own := mark
				own.Owner = fmt.Sprint("owner", try)
				f.settleAs(by, own, ops, actual)
			})
		})
	}
}

// settleAs settles a reservation, and books the difference if it is the first.
func (f *fleet) settleAs(p *process, m limiter.Mark, reserved []limiter.Op, actual int64) {
	won := false
	for range 3 {
		var err error
		won, err = p.store.Settle(f.newContext(p.stopped, f.now+int64(2*time.Second)), p.moment(), m)
		if !errors.Is(err, limiter.ErrUncertain) {
			break
		}
	}
	if p.ended || !won {
		return
	}
	if f.settled[m.ID]++; f.settled[m.ID] > 1 {
		f.failf("%s was settled by two", m.ID)
	}
	for i := range reserved {
		r := &reserved[i]
		op := f.later(p, f.bucket(r.Bucket), r.Shard)
		for j := range r.Spends {
			sp := &r.Spends[j]
			if diff := actual - sp.Take; sp.Held && diff != 0 {
				op.Spends = append(op.Spends, limiter.Spend{Limit: sp.Limit, Charge: max(diff, 0), Refund: max(-diff, 0)})
			}
		}
		if len(op.Spends) > 0 {
			_, _ = f.take(p, []limiter.Op{op})
		}
	}
}
