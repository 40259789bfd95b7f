package fleetsim_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// settleDown has everything come to an end: calls, writes, leases, and shards. Then
// the buckets fill up, to their capacities and no more.
func (f *fleet) settleDown() {
	if f.fault != nil {
		return
	}
	f.on.lost, f.on.tails, f.throttledUntil, f.outUntil = false, false, 0, 0
	for _, at := range f.replicas {
		at.cutOff = 0 // a pause goes on: its clocks have stood still for all of it
		for _, b := range f.buckets {
			at.latest[b.index] = len(b.versions) - 1
		}
	}
	f.rest(40 * second) // processes go on, late messages have come, leases have ended
	rounds := 12        // long enough for a lease to count as dead
	if f.on.shards || f.on.throttle {
		rounds = 40 // and for all shards to be merged, one after the other
	}
	for i := range rounds {
		for _, b := range f.buckets {
			f.ask(f.replicas[i%len(f.replicas)].process, b, func(int64) int64 { return 1 })
		}
		f.rest(2 * second)
	}
	f.rest(40 * second)
	f.release()
	f.checkAccount()
	f.checkUsage()
	f.checkRest()
	if f.fault != nil {
		return
	}
	wait := f.untilFull()
	if wait > longestFill {
		return
	}
	f.rest(wait)
	for _, b := range f.buckets {
		p, extra := f.some().process, b.items[0] != nil && hasExtra(b.items[0])
		f.want(p, b, true, func(capacity int64) int64 { return capacity })
		if !extra {
			f.want(p, b, false, func(capacity int64) int64 { return capacity/2 + 1 })
		}
	}
}

// hasExtra reports whether a limit has tokens above its capacity.
func hasExtra(it *schema.Bucket) bool {
	return slices.ContainsFunc(it.Balances, func(of schema.Balance) bool { return of.Extra() > 0 })
}

// rest lets time go by.
func (f *fleet) rest(d int64) {
	end := f.now + d
	for f.fault == nil && f.next(end) { // go on
	}
	f.now = max(f.now, end)
}

// want requires an answer of a bucket that is full, or was emptied just now.
func (f *fleet) want(p *process, b *bucket, admitted bool, n func(capacity int64) int64) {
	limits, _ := p.knows(b)
	for i := range limits.Len() {
		x := limits.Params(i)
		if !admitted && x.Amount*int64(answerTime+time.Second)/int64(time.Millisecond)/x.Period >= x.Capacity/2 {
			return // so much is refilled until the answer
		}
	}
	a := f.ask(p, b, n)
	for wait := int64(0); !a.given && wait < int64(answerTime); wait += int64(time.Millisecond) {
		f.rest(int64(time.Millisecond))
	}
	if f.fault == nil && (!a.given || a.err != nil || a.admitted != admitted) {
		f.failf("bucket %d, full and idle: answered %t, admitted %t, %v, want admitted %t: %+v", b.index, a.given, a.admitted, a.err, admitted, b.items[0])
	}
}

// checkAccount compares the balances with the answers to callers, from both sides.
func (f *fleet) checkAccount() {
	for _, b := range f.buckets {
		for _, l := range b.limits {
			there, extra, ok := b.there(f, l.name)
			if !ok || f.fault != nil {
				continue
			}
			if err := l.all.check(f.now, there+extra); err != nil {
				f.failf("bucket %d, limit %s, at rest: with the %d millitokens that are there, %w", b.index, l.name, there+extra, err)
			}
			capacity := l.lacks.params.Capacity
			if over := l.lacks.check(f.now, capacity-there); over > f.lostTwice() && !b.twins {
				f.failf("bucket %d, limit %s, at rest: it lacks %d millitokens of %d, %d more than is explained", b.index, l.name, capacity-there, capacity, over)
			}
		}
	}
}

// lostTwice returns the millitokens that processes count as taken once more, or for no caller, where a copy of a
// throttled write was applied: some of its takes may be for calls that were denied meanwhile.
func (f *fleet) lostTwice() (sum int64) {
	if f.seen[throttledCopy] == 0 {
		return 0
	}
	for _, at := range f.replicas {
		sum += at.process.engine.Stats().LostTwice
	}
	return sum
}

// checkRest requires that nothing is leased, owed or moving, and that the buckets have one
// shard each.
func (f *fleet) checkRest() {
	for _, at := range f.replicas {
		if owed := at.process.engine.Stats().Owed; owed > 0 {
			f.failf("replica %d: owes %d requests, at rest", at.index, owed)
		}
	}
	for _, b := range f.buckets {
		for i, it := range b.items {
			switch {
			case it == nil || it.Shard.Retired:
			case i > 0 || it.Shard.Sharded():
				f.failf("bucket %d: shard %d of %d stays", b.index, i, it.Shard.Level)
			case len(it.Leases) > 0 || it.Line.Rate != schema.Parts || it.Line.Room != schema.Parts:
				f.failf("bucket %d: parts are leased at rest: %+v, %+v", b.index, it.Line, it.Leases)
			case it.TTL == 0 && !hasExtra(it):
				f.failf("bucket %d: it has no ttl", b.index)
			}
		}
	}
}

// untilFull returns how long it takes until the buckets are full.
func (f *fleet) untilFull() int64 {
	wait := second
	for _, b := range f.buckets {
		it := b.items[0]
		if it == nil {
			continue
		}
		for i := range it.Balances {
			x := &it.Balances[i]
			lacks := max(x.Share.Capacity-tokensAt(it, x, f.lateTime()), 0) + x.Carried + 1
			wait = max(wait, int64(min(float64(lacks)/float64(x.Share.Amount)*float64(x.Share.Period)*1.001+10, 1e12)*1e6)+f.spread)
		}
	}
	return wait
}

// longestFill is how long a bucket may take to fill that is waited for.
const longestFill = 100 * 24 * 3600 * second

// lossLog is the log of a process, from which the simulation reads the counted losses.
type lossLog struct {
	slog.Handler

	process *process
}

func (h lossLog) Enabled(context.Context, slog.Level) bool { return true }

func (h lossLog) Handle(_ context.Context, r slog.Record) error {
	var b *bucket
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "entity" {
			b = h.process.fleet.byEntity[a.Value.String()]
		}
		return true
	})
	if b != nil && strings.HasPrefix(r.Message, "a lease ended") {
		h.process.lapsed[b] = true
		h.process.endedInTime(b)
		h.process.fleet.seen["lease ended"]++
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "usage_millitokens" && b != nil {
			h.process.fleet.seen["usage counted as lost"]++
			for _, l := range b.limits { // the line has their sum, and that of consumption and refunds
				l.usage.perhaps(-a.Value.Int64())
				l.usage.perhaps(a.Value.Int64())
			}
		}
		if a.Key != "millitokens" || b == nil {
			return true
		}
		h.process.fleet.seen["counted as lost"]++
		if *oneSeed >= 0 {
			r.Attrs(func(a slog.Attr) bool {
				if a.Key == "error" {
					h.process.fleet.seen[a.Value.String()]++
				}
				return true
			})
		}
		for _, limit := range a.Value.Group() {
			l := b.limit(limit.Key)
			l.lacks.mayTake(h.process.fleet.now, limit.Value.Int64())
			l.all.gives(limit.Value.Int64())
			l.usage.perhaps(limit.Value.Int64())
			l.usage.perhaps(-limit.Value.Int64())
		}
		return true
	})
	return nil
}
