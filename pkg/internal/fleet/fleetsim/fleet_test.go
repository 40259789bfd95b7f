package fleetsim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

const (
	simTable = "buckets"
	simStart = int64(1_800_000_000_000) // Unix ms
	second   = int64(time.Second)
)

// sabotage is a rule that a run goes without.
type sabotage struct {
	mutation  func(*dynamodb.UpdateItemInput)
	callClock bool // engines go by the clock of calls, which does not see the wall
}

// fleet is a run: replicas, a table, and the network between.
type fleet struct {
	*eventLoop
	sabotage

	on       features
	t        *testing.T
	db       *dynamofake.DB
	buckets  []*bucket // the last one is the others' parent, if calls cascade
	replicas []*replica
	leaving  []*process // that end cleanly
	ahead    int64      // ns, that a clock of calls is ahead of the truth at most
	spread   int64      // ns, between two of them
	median   float64    // ns, of the time of a message one way

	span       int64 // ns that there are calls
	pace       int64 // calls in a second, of all replicas
	shardUnits int64
	quiet      time.Duration
	troubled   int64 // until when a replica has trouble
	over       bool  // no more calls
	leaping    int64 // until when there are no calls

	throttledUntil, outUntil int64
	history
}

// bucket is a bucket of a simulation.
type bucket struct {
	index    int
	key      limiter.BucketKey
	keys     [schema.MaxShards]schema.Key
	share    int64 // calls in a second
	lease    limiter.LeasePolicy
	most     int64             // the greatest capacity of its limits so far
	changed  int64             // when a write last brought an item under other limits
	leased   map[uint32]int64  // when leases were last written, by the replicas that items name
	twins    bool              // processes with the same numbers made calls
	calls    int               // that were made so far
	keep     bool              // the policy admits unanswered calls
	versions []*limiter.Limits // by generation less 1
	limits   []*limitHistory
	items    [schema.MaxShards]*schema.Bucket
}

func newFleet(t *testing.T, seed uint64, only, without string, s sabotage) *fleet {
	r := rand.New(rand.NewPCG(seed, 2))
	f := &fleet{eventLoop: &eventLoop{r: r}, t: t, db: dynamofake.New(), on: drawFeatures(r, only, without), sabotage: s}
	f.createTable()
	f.register()
	f.drawSize()
	count := []int{1, 2, 2, 3, 4, 8}[r.IntN(6)]
	if f.on.long {
		count = max(count, 2)
	}
	for i := range count {
		at := &replica{index: i, latest: make([]int, len(f.buckets))}
		if f.on.skew {
			at.skew = r.Int64N(int64(200 * time.Millisecond))
			f.ahead = max(f.ahead, at.skew)
		}
		if f.on.drift {
			at.drift, at.phase = r.Int64N(40_001)-20_000, r.Int64N(2*swingTime)
		}
		f.replicas = append(f.replicas, at)
	}
	f.spread = f.ahead
	if f.on.drift {
		f.ahead, f.spread = f.ahead+maxSwing, f.spread+2*maxSwing
	}
	if f.on.suspend || f.on.freeze {
		f.spread += 2 * second // a clock that is behind by less is trusted, until replies correct it
	}
	f.beginHistory()
	for _, at := range f.replicas {
		f.begin(at)
		f.phase(at)
	}
	f.schedule()
	return f
}

func (f *fleet) createTable() {
	ctx := f.t.Context()
	if _, err := f.db.CreateTable(ctx, dynamo.TableInput(simTable)); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(simTable),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(schema.AttrTTL), Enabled: aws.Bool(true)},
	}); err != nil {
		f.t.Fatal(err)
	}
}

// drawSize draws how much there is of everything: of calls, tokens, and time.
func (f *fleet) drawSize() {
	f.shardUnits, f.quiet, f.median = 1<<40, time.Duration(1+f.r.IntN(3))*time.Second, 1.2e6
	if f.on.shards { // else a throttled bucket is split
		f.shardUnits = []int64{10, 30, 100}[f.r.IntN(3)]
	}
	if f.on.far {
		f.median = 20e6
	}
	f.span = []int64{1, 4, 12, 30}[f.r.IntN(4)] * second
	calls := []int64{1500, 5000, 20_000, 50_000}[f.r.IntN(4)]
	if f.on.few {
		calls = 1500
	}
	if f.on.long || f.on.parks {
		f.span = max(f.span, 12*second)
	}
	f.pace = calls * second / f.span
	children := 1 + f.r.IntN(3)
	count := children
	if f.on.cascade {
		count++
	}
	for i := range count {
		b := &bucket{index: i, leased: make(map[uint32]int64), key: limiter.BucketKey{Namespace: simNamespace, Entity: fmt.Sprint("e", i), Resource: "r"}}
		b.share = max(f.pace/int64(children), 1)
		if f.on.cascade && i == children {
			b.share = max(f.pace, 1)
		}
		f.drawBucket(b)
		f.buckets = append(f.buckets, b)
	}
}

func (f *fleet) drawBucket(b *bucket) {
	b.keep = f.r.IntN(5) > 0
	b.lease = []limiter.LeasePolicy{{}, {}, {}, {None: true}, {Max: b.share * meanCost / 10}, {For: 500 * time.Millisecond}}[f.r.IntN(6)]
	limits := []limiter.Limit{f.drawLimit("a", b.share)}
	if f.on.two {
		limits = append(limits, f.drawLimit("b", b.share))
	}
	b.versions = append(b.versions, f.limitsOf(limits...))
	if f.on.slow { // some never refill: they are those of a window
		b.key.Window = limiter.Window{Start: simStart / 1000, End: simStart/1000 + 100*24*60*60, Calendar: 1}
	}
	for i := range b.keys {
		b.keys[i] = schema.BucketKey(simNamespace, b.key, i)
	}
}

// meanCost is the mean take of a call from a limit, in millitokens.
const meanCost = 1000

// mostCapacity is the greatest capacity of a limit, in tokens: the sums of a thousand takes of all of it
// are to fit a tally.
const mostCapacity = 4_000_000

// drawLimit draws a limit of a bucket that has that many calls a second: it refills a
// part of their demand, or several times as much.
func (f *fleet) drawLimit(name string, calls int64) limiter.Limit {
	percent := []int64{10, 50, 90, 120, 300, 1000}[f.r.IntN(6)]
	period := []int64{1, 1, 10, 60}[f.r.IntN(4)]
	amount := max(calls*period*percent/100, 1)
	if f.on.slow {
		span := max(f.span/second, 1)
		return limiter.Custom(name, max(calls*span*percent/1000, 3), f.r.Int64N(2), time.Duration(max(period, 10))*time.Second)
	}
	capacity := min(max(amount*[]int64{1, 1, 2, 10}[f.r.IntN(4)]/[]int64{1, 1, 4, 50}[f.r.IntN(4)], 3), mostCapacity)
	return limiter.Custom(name, capacity, amount, time.Duration(period)*time.Second)
}

func (f *fleet) limitsOf(limits ...limiter.Limit) *limiter.Limits {
	set, err := limiter.NewLimits(limits...)
	if err != nil {
		f.t.Fatal(err)
	}
	return set
}

// cost draws the take of a call: mostly little, now and then very much.
func (f *fleet) cost() int64 {
	if f.r.IntN(3) == 0 {
		return meanCost
	}
	return max(1, int64(min(meanCost/3/math.Pow(1-f.r.Float64(), 0.8), 1e6)))
}

// every has something happen again and again, at times that are about so far apart.
func (f *fleet) every(mean int64, do func()) {
	pause := func() int64 { return 1 + int64(f.r.ExpFloat64()*float64(mean)) }
	var again func()
	again = func() {
		if !f.over {
			do()
			f.after(pause(), again)
		}
	}
	f.after(pause(), again)
}

func (f *fleet) some() *replica { return f.replicas[f.r.IntN(len(f.replicas))] }

// schedule schedules the events of the run's features.
func (f *fleet) schedule() {
	if f.on.throttle {
		f.every(2*second, func() { f.throttledUntil = f.now + f.r.Int64N(second) })
	}
	if f.on.outage {
		f.every(6*second, func() { f.outUntil = f.now + f.r.Int64N(4*second) })
	}
	if f.on.cut {
		f.every(4*second, func() {
			at := f.some()
			at.cutOff, at.deaf = f.now+f.r.Int64N([]int64{second, 15 * second}[f.r.IntN(2)]), f.r.IntN(2) == 0
			at.suffers(f, at.cutOff-f.now)
		})
	}
	f.scheduleClocks()
	if f.on.crash {
		f.every(4*second, func() {
			at := f.some()
			at.process.die()
			for _, other := range f.replicas { // its leases are out until they are freed
				other.suffers(f, reapTime)
			}
			f.begin(at)
		})
	}
	if f.on.adjust {
		f.every(f.span/8, func() { f.adjust(f.some().process, f.buckets[f.r.IntN(len(f.buckets))]) })
	}
	if f.on.rollout {
		f.every(3*second, func() {
			if at := f.some(); f.leaping <= f.now && len(f.leaving) < len(f.replicas) {
				f.rollout(at)
			}
		})
	}
	if f.on.expire {
		f.every(10*second, func() {
			if f.db.Expire(simTable, simStart/1000+f.now/second) > 0 {
				f.expired()
			}
		})
	}
	if f.on.adopt {
		pause := 2 * second
		if f.on.restless {
			pause = second / 20
		}
		f.every(pause, func() { f.change(f.buckets[f.r.IntN(len(f.buckets))]) })
	}
}

// scheduleClocks has processes and machines stand still, and clocks be set.
func (f *fleet) scheduleClocks() {
	long := func() int64 { return f.r.Int64N([]int64{second / 10, second, 14 * second}[f.r.IntN(3)]) }
	if f.on.pause {
		f.every(3*second, func() { f.some().process.pause(long()) })
	}
	if f.on.suspend {
		f.every(5*second, func() { f.some().process.suspend(long()) })
	}
	if f.on.freeze {
		f.every(8*second, func() {
			if at := f.some(); f.leaping <= f.now { // else it falls behind by more than a clock is trusted
				at.process.freeze(long())
			}
		})
	}
	if f.on.steps {
		f.every(3*second, func() {
			by := f.r.Int64N([]int64{second, 20 * second, 7200 * second}[f.r.IntN(3)])
			p := f.some().process
			p.behind += []int64{by, -by}[f.r.IntN(2)]
			p.troubles = append(p.troubles, trouble{f.now - leaseTerm, f.now}) // leases end by that at once
			p.suffers(f, leaseTerm)
		})
	}
}

// change has a bucket be under other limits. Replicas get to know it one by one.
func (f *fleet) change(b *bucket) {
	if len(b.versions) > 4 && !f.on.restless || len(b.versions) > 40 {
		return
	}
	first := b.versions[0]
	var limits []limiter.Limit
	for i := range first.Len() {
		switch f.r.IntN(3) {
		case 0:
			limits = append(limits, first.At(i))
		case 1:
			limits = append(limits, f.drawLimit(first.At(i).Name, b.share))
		default:
			if i+1 == first.Len() && len(limits) == 0 {
				limits = append(limits, f.drawLimit(first.At(i).Name, b.share))
			}
		}
	}
	b.version(f.limitsOf(limits...))
	newest, within := len(b.versions)-1, 5*second
	if f.on.restless {
		within /= 50
	}
	told := f.now
	for _, at := range f.replicas {
		after := f.r.Int64N(within)
		told = max(told, f.now+after)
		f.after(after, func() { at.latest[b.index] = max(at.latest[b.index], newest) })
	}
	f.at(told, func() { f.expectForce(b, newest, f.now) })
}

// phase has a replica have calls for a while, or none.
func (f *fleet) phase(at *replica) {
	silent := f.now > 0 && f.r.IntN(4) == 0
	rate := max(f.pace*[]int64{20, 60, 100, 300}[f.r.IntN(4)]/int64(100*len(f.replicas)), 1)
	until := f.now + []int64{2e8, 1e9, 5e9}[f.r.IntN(3)]
	begin := f.now
	if f.on.parks && f.now > 0 && f.r.IntN(3) == 0 {
		begin += 4*second + f.r.Int64N(2*second)
		at.cutOff, at.deaf = begin+second, true
		at.suffers(f, at.cutOff-f.now)
		silent, rate, until = false, 5*f.pace, begin+second/5
	}
	var again func()
	again = func() {
		switch {
		case f.over:
		case f.leaping > f.now:
			f.at(f.leaping, again)
		case until <= f.now:
			f.phase(at)
		case silent:
			f.at(until, again)
		default:
			if p := at.process; p.pausedUntil <= f.now {
				f.call(p)
			}
			f.after(1+int64(f.r.ExpFloat64()*float64(second)/float64(rate)), again)
		}
	}
	f.at(begin, again)
}

// leap lets hours go by without a call, in which items expire.
func (f *fleet) leap() int64 {
	f.leaping = f.now + 7200*second + f.r.Int64N(7200*second)
	return f.leaping + f.span/2
}

// close ends all that still runs.
func (f *fleet) close() {
	for _, p := range f.leaving {
		p.die()
	}
	for _, at := range f.replicas {
		at.process.die() // so that nothing begins in its place
	}
	f.stop()
}

// run runs the simulation, and returns the fault, nil if there was none.
func (f *fleet) run() error {
	defer f.close()
	end := f.span
	for f.fault == nil && f.next(end) {
		if f.on.expire && f.r.IntN(2000) == 0 && f.now > f.span/3 {
			f.on.expire = false
			end = f.leap()
		}
	}
	f.over = true
	f.settleDown()
	return f.fault
}
