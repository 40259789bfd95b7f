package dynamo

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// settleDown has everything come to an end: what is under way, leases, and shards.
// Then the buckets fill up, to their capacities and no more.
func (f *fleet) settleDown() {
	if f.fault != nil {
		return
	}
	f.lost, f.tails, f.throttledUntil = false, false, 0
	for _, at := range f.replicas {
		at.cutOff, at.process.pausedUntil = 0, min(at.process.pausedUntil, f.now)
		for _, b := range f.buckets {
			at.latest[b.index] = len(b.versions) - 1
		}
	}
	f.rest(int64(40 * time.Second)) // what is late has come
	f.settleUndone()
	for _, b := range f.buckets {
		b.checkShortfalls()
	}
	for i := range 30 { // long enough for a lease to be taken for dead, and seldom enough for a shard to be quiet
		for _, b := range f.buckets {
			f.ask(f.replicas[i%len(f.replicas)].process, b, func(tokenbucket.Params) int64 { return 1 })
		}
		f.rest(int64(2 * time.Second))
	}
	for _, b := range f.buckets { // who needs what the dead have has it freed
		f.ask(f.replicas[f.r.IntN(len(f.replicas))].process, b, func(p tokenbucket.Params) int64 { return p.Capacity })
	}
	f.rest(int64(10 * time.Second))
	f.checkRest()
	f.rest(f.untilFull())
	for _, b := range f.buckets {
		p := f.replicas[f.r.IntN(len(f.replicas))].process
		f.want(p, b, true, func(p tokenbucket.Params) int64 { return p.Capacity })
		clock := f.spread/int64(time.Millisecond) + 1 // which a reply may have set right
		f.want(p, b, false, func(p tokenbucket.Params) int64 { return 2 + 2*(answerTime+clock)*p.Amount/p.Period })
	}
}

// rest lets time go by.
func (f *fleet) rest(d int64) {
	end := f.now + d
	for f.fault == nil && f.next(end) { // go on
	}
	f.now = end
}

// ask has a process ask for a number of millitokens of each limit of a bucket, 0 for a
// look.
func (f *fleet) ask(p *process, b *simBucket, n func(tokenbucket.Params) int64) *answer {
	limits, generation := p.knows(b)
	op := limiter.Op{Bucket: b.site.bucket, Limits: limits, Generation: generation, Lease: b.policy}
	for i := range limits.Len() {
		take := n(limits.Params(i))
		op.Spends = append(op.Spends, limiter.Spend{Limit: limits.At(i).Name, Take: take, Look: take == 0})
	}
	a := &answer{}
	p.Start(func() {
		a.admitted, a.err = f.take(p, []limiter.Op{op})
		a.given = true
	})
	return a
}

// answer is what a caller was told.
type answer struct {
	given    bool
	admitted bool
	err      error
}

// answerTime is how long an answer may take of a bucket that nobody else asks for, in ms.
const answerTime = 100

// want requires an answer. What is more than the capacity is not asked for.
func (f *fleet) want(p *process, b *simBucket, admitted bool, n func(tokenbucket.Params) int64) {
	limits, _ := p.knows(b)
	for i := range limits.Len() {
		if n(limits.Params(i)) > limits.Params(i).Capacity {
			return
		}
	}
	a := f.ask(p, b, n)
	for wait := 0; !a.given && wait < answerTime; wait++ {
		f.rest(int64(time.Millisecond))
	}
	if f.fault == nil && (!a.given || a.err != nil || a.admitted != admitted) {
		f.failf("bucket %d, full and idle: answered %t, admitted %t, %v, want admitted %t", b.index, a.given, a.admitted, a.err, admitted)
	}
}

// checkRest requires that nobody holds a lease or waits for anything, and that the
// buckets have one shard each.
func (f *fleet) checkRest() {
	for _, at := range f.replicas {
		for _, t := range at.process.tasks {
			f.failf("replica %d: a task that never ends, of %d", at.index, len(at.process.tasks))
			_ = t
		}
	}
	for _, b := range f.buckets {
		for i, v := range b.items {
			switch {
			case v == nil || v.shard.Retired:
				continue
			case i > 0 || v.shard.Sharded():
				f.failf("bucket %d: shard %d of %d stays, with the leases %+v", b.index, i, v.shard.Level, v.leases)
			case v.ttl == 0:
				f.failf("bucket %d: it has no ttl", b.index)
			}
			for j := range v.balances {
				if x := &v.balances[j]; x.leased > 0 {
					f.failf("bucket %d, shard %d, limit %s: %d millitokens are out on lease for ever: %+v", b.index, i, x.limit.Name, x.leased, v.leases)
				}
			}
		}
	}
}

// untilFull returns how long it takes until the buckets are full.
func (f *fleet) untilFull() int64 {
	wait := int64(time.Second)
	for _, b := range f.buckets {
		for _, v := range b.items {
			if v == nil || v.shard.Retired {
				continue
			}
			for i := range v.balances {
				x := &v.balances[i]
				wait = max(wait, (x.state.TimeToFull(x.params, f.late())+1)*int64(time.Millisecond)+f.spread)
			}
		}
	}
	return wait
}
