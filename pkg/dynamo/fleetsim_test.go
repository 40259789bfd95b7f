package dynamo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The simulation of a fleet runs whole stores: calls as Take has them, over a bucket
// and its parent's, decided from token leases or through lanes, with retries, pauses
// between them, deadlines, and the breaker. The store is given an event loop in place
// of goroutines and timers, see fleetsim_loop_test.go and fleetsim_process_test.go, and
// a network, see fleetsim_net_test.go. What callers are told and what the items come to
// be is held against the promises, see fleetsim_oracle_test.go.
//
// The simulation of shards has no use for time: it draws any order of steps there is,
// of few tokens, and finds the rare one sooner. What depends on how long things take
// (leases, their size and their term, renewals ahead of need, deadlines) needs a clock
// that runs, and thousands of calls in a run, most of them never seen by DynamoDB. So
// this is another one, which has nothing of a store done in its place.

const simNamespace = "ns"

// fleetFeatures are what can happen in a run.
type fleetFeatures struct {
	leases  bool
	cascade bool // calls take from a bucket and from its parent's
	two     bool // limits

	lost     bool // messages and replies; or they come late, or twice
	tails    bool // a message now and then takes very long
	throttle bool
	cut      bool // replicas are cut off for a while
	pause    bool // processes stop for a while
	suspend  bool // machines sleep: their monotonic clocks stand still
	freeze   bool // machines are paused as a whole, with both clocks
	steps    bool // the time of machines is set, ahead and back
	crash    bool
	restart  bool // processes end in order
	skew     bool // clocks differ on the wall
	drift    bool // and those that are monotonic run at different speeds
	copies   bool // processes have the names and numbers of others
	slots    bool // all replicas leave the ids of their writes in one place

	refund, charge, settle, looks, large bool

	adopt  bool // limits change
	shards bool // shards are split and merged, by load
	ttl    bool // there are hours without a call

	slow  bool // limits refill next to nothing, so that no refill excuses what is too much
	parks bool // replicas that are cut off keep still for about a lease's term, and then ask a lot

	few      bool // calls
	long     bool // time, and several replicas
	restless bool // limits change all the time
}

func drawFleetFeatures(r *rand.Rand) fleetFeatures {
	p := func(percent int) bool { return r.IntN(100) < percent }
	return fleetFeatures{
		leases: p(85), cascade: p(50), two: p(25),
		lost: p(60), tails: p(50), throttle: p(30), cut: p(20), pause: p(35), crash: p(30), restart: p(20), skew: p(30), drift: p(30), slots: p(40),
		refund: p(40), charge: p(30), settle: p(30), looks: p(40), large: p(40),
		adopt: p(20), shards: p(25), ttl: p(10), suspend: p(20), freeze: p(10), steps: p(20), copies: p(15),
	}
}

// fleetSabotage is a rule that a run goes without.
type fleetSabotage struct {
	update    func(*dynamodb.UpdateItemInput)
	put       func(*dynamodb.PutItemInput)
	lane      func(*process, *lane) // after each step of a task of the process
	unsalted  bool                  // ids are numbers alone
	callClock bool                  // stores go by the clock of calls, which does not see the wall
}

// fleet is a run: replicas, a table, and what is between.
type fleet struct {
	*eventLoop
	fleetFeatures
	fleetSabotage
	t        *testing.T
	db       *dynamofake.DB
	buckets  []*simBucket // the last one is the others' parent, if calls cascade
	replicas []*replica
	ahead    int64 // ns, that a clock of calls is ahead of the truth at most
	spread   int64 // ns, between two of them

	span       int64 // ns that there are calls
	pace       int64 // calls in a second, of all replicas
	shardUnits int64
	quiet      time.Duration
	over       bool  // no more calls
	leaping    int64 // until when there are no calls

	throttledUntil int64
	fleetHistory
}

func newFleet(t *testing.T, seed uint64, features func(*rand.Rand) fleetFeatures, without fleetSabotage) *fleet {
	r := rand.New(rand.NewPCG(seed, 2))
	f := &fleet{eventLoop: &eventLoop{r: r}, t: t, db: dynamofake.New(), fleetFeatures: features(r), fleetSabotage: without}
	ctx := t.Context()
	if _, err := f.db.CreateTable(ctx, TableInput(simTable)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(simTable),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(schema.AttrTTL), Enabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
	f.drawSize()
	count := []int{1, 2, 2, 3, 4}[r.IntN(5)]
	if f.long {
		count = max(count, 2)
	}
	for i := range count {
		at := &replica{index: i, latest: make([]int, len(f.buckets))}
		if f.skew {
			at.skew = r.Int64N(int64(200 * time.Millisecond))
			f.ahead = max(f.ahead, at.skew)
		}
		if f.drift {
			at.drift, at.phase = r.Int64N(40_001)-20_000, r.Int64N(2*swingTime)
		}
		f.replicas = append(f.replicas, at)
	}
	f.spread = f.ahead
	if f.drift {
		f.ahead, f.spread = f.ahead+maxSwing, f.spread+2*maxSwing
	}
	if f.suspend || f.freeze {
		f.spread += int64(DefaultClockTolerance) // a clock that is behind by less is trusted, until replies tell
	}
	f.beginHistory()
	for _, at := range f.replicas {
		f.begin(at)
		f.phase(at)
	}
	f.schedule()
	return f
}

// drawSize draws how much there is of everything: of calls, tokens, and time.
func (f *fleet) drawSize() {
	f.shardUnits, f.quiet = 1<<40, time.Minute
	if f.shards {
		f.shardUnits, f.quiet = []int64{10, 30, 100}[f.r.IntN(3)], time.Duration(1+f.r.IntN(3))*time.Second
	}
	f.span = []int64{1, 4, 12, 30}[f.r.IntN(4)] * int64(time.Second)
	calls := []int64{1500, 5000, 15_000, 30_000}[f.r.IntN(4)]
	if f.few {
		calls = 1500
	}
	if f.long || f.parks {
		f.span = max(f.span, 12*int64(time.Second))
	}
	f.pace = calls * int64(time.Second) / f.span
	children := 1 + f.r.IntN(3)
	count := children
	if f.cascade {
		count++
	}
	for i := range count {
		b := &simBucket{index: i, fleet: f, site: site{ns: simNamespace, bucket: limiter.BucketKey{Namespace: simNamespace, Entity: fmt.Sprint("e", i), Resource: "r"}}}
		share := f.pace / int64(children)
		if f.cascade && i == children {
			share = f.pace
		}
		b.share = max(share, 1)
		f.buckets = append(f.buckets, b)
	}
	for _, b := range f.buckets {
		b.policy = []limiter.LeasePolicy{{}, {}, {}, {None: true}, {Max: b.share * meanCost / 10}, {For: 500 * time.Millisecond}}[f.r.IntN(6)]
		limits := []limiter.Limit{f.drawLimit("a", b.share)}
		if f.two {
			limits = append(limits, f.drawLimit("b", b.share))
		}
		b.versions = append(b.versions, f.limitsOf(limits...))
	}
}

// meanCost is what a call takes of a limit on average, in millitokens.
const meanCost = 1000

// drawLimit draws a limit of a bucket that has so many calls a second: it refills a part
// of what they ask for, or several times as much.
func (f *fleet) drawLimit(name string, calls int64) limiter.Limit {
	percent := []int64{10, 50, 90, 120, 300, 1000}[f.r.IntN(6)]
	period := []int64{1, 1, 10, 60}[f.r.IntN(4)]
	amount := max(calls*period*percent/100, 1)
	if f.slow {
		span := max(f.span/int64(time.Second), 1)
		return limiter.Custom(name, max(calls*span*percent/1000, 3), 1, time.Duration(max(period, 10))*time.Second)
	}
	capacity := max(amount*[]int64{1, 1, 2, 10}[f.r.IntN(4)]/[]int64{1, 1, 4, 50}[f.r.IntN(4)], 3)
	return limiter.Custom(name, capacity, amount, time.Duration(period)*time.Second)
}

func (f *fleet) limitsOf(limits ...limiter.Limit) *limiter.Limits {
	set, err := limiter.NewLimits(limits...)
	if err != nil {
		f.t.Fatal(err)
	}
	return set
}

// cost draws what a call takes: mostly little, now and then very much.
func (f *fleet) cost() int64 {
	if f.r.IntN(3) == 0 {
		return meanCost
	}
	return max(1, int64(min(meanCost/3/math.Pow(1-f.r.Float64(), 0.8), 1e6)))
}

// after has something happen again and again, at times that are about so far apart.
func (f *fleet) after(mean int64, do func()) {
	var again func()
	again = func() {
		if !f.over {
			do()
			f.at(f.now+1+int64(f.r.ExpFloat64()*float64(mean)), again)
		}
	}
	f.at(f.now+1+int64(f.r.ExpFloat64()*float64(mean)), again)
}

// schedule has happen what the features of the run are.
func (f *fleet) schedule() {
	some := func() *replica { return f.replicas[f.r.IntN(len(f.replicas))] }
	second := int64(time.Second)
	if f.throttle {
		f.after(2*second, func() { f.throttledUntil = f.now + f.r.Int64N(second) })
	}
	if f.cut {
		f.after(4*second, func() {
			at := some()
			at.cutOff, at.deaf = f.now+f.r.Int64N([]int64{second, 15 * second}[f.r.IntN(2)]), f.r.IntN(2) == 0
		})
	}
	f.scheduleClocks(some)
	if f.crash {
		f.after(4*second, func() {
			at := some()
			at.process.die()
			f.begin(at)
		})
	}
	if f.restart {
		f.after(3*second, func() { some().process.leave() })
	}
	if f.ttl {
		f.after(10*second, func() {
			if f.db.Expire(simTable, simStart/1000+f.now/second) > 0 {
				f.expired()
			}
		})
	}
	if f.adopt {
		pause := 2 * second
		if f.restless {
			pause = second / 20
		}
		f.after(pause, func() { f.change(f.buckets[f.r.IntN(len(f.buckets))]) })
	}
}

// scheduleClocks has processes and machines stand still, and clocks be set.
func (f *fleet) scheduleClocks(some func() *replica) {
	second := int64(time.Second)
	long := func() int64 { return f.r.Int64N([]int64{second / 10, second, 14 * second}[f.r.IntN(3)]) }
	if f.pause {
		f.after(3*second, func() { some().process.pause(long()) })
	}
	if f.suspend {
		f.after(5*second, func() { some().process.suspend(long()) })
	}
	if f.freeze {
		f.after(8*second, func() { some().process.freeze(long()) })
	}
	if f.steps {
		f.after(3*second, func() {
			by := f.r.Int64N([]int64{second, 20 * second, 7200 * second}[f.r.IntN(3)])
			some().process.behind += []int64{by, -by}[f.r.IntN(2)]
		})
	}
}

// change has a bucket be under other limits. Replicas get to know it one by one.
func (f *fleet) change(b *simBucket) {
	if len(b.versions) > 4 && !f.restless || len(b.versions) > 40 {
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
	newest, within := len(b.versions)-1, int64(5*time.Second)
	if f.restless {
		within /= 50
	}
	for _, at := range f.replicas {
		f.at(f.now+f.r.Int64N(within), func() { at.latest[b.index] = max(at.latest[b.index], newest) })
	}
}

// tick has a process do what it does at intervals.
func (f *fleet) tick(p *process) {
	every := func(d time.Duration, do func()) {
		var again func()
		again = func() {
			switch {
			case p.ended:
				return
			case p.pausedUntil > f.now:
				f.at(p.pausedUntil, again)
				return
			}
			do()
			if f.leaping-f.now > int64(time.Minute) { // nobody would notice
				f.at(f.now+int64(time.Minute), again)
				return
			}
			f.at(f.now+int64(d), again)
		}
		f.at(f.now+f.r.Int64N(int64(d)), again)
	}
	if f.shards {
		every(f.quiet/looksPerQuiet, func() { p.store.tendTrees(p.now()) })
	}
}

// phase has a replica have calls for a while, or none.
func (f *fleet) phase(at *replica) {
	silent := f.now > 0 && f.r.IntN(4) == 0
	rate := max(f.pace*[]int64{20, 60, 100, 300}[f.r.IntN(4)]/int64(100*len(f.replicas)), 1)
	until := f.now + []int64{2e8, 1e9, 5e9}[f.r.IntN(3)]
	begin := f.now
	if f.parks && f.now > 0 && f.r.IntN(3) == 0 {
		begin += int64(leaseTerm) - int64(time.Second) + f.r.Int64N(int64(2*time.Second))
		at.cutOff, at.deaf = begin+int64(time.Second), true
		silent, rate, until = false, 5*f.pace, begin+int64(200*time.Millisecond)
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
			if p := at.process; p.pausedUntil <= f.now && !p.leaving {
				f.call(p)
			}
			f.at(f.now+1+int64(f.r.ExpFloat64()*float64(time.Second)/float64(rate)), again)
		}
	}
	f.at(begin, again)
}

// leap lets hours go by without a call, in which items expire.
func (f *fleet) leap() int64 {
	f.leaping = f.now + int64(2*time.Hour) + f.r.Int64N(int64(2*time.Hour))
	return f.leaping + f.span/2
}

// close ends what still runs.
func (f *fleet) close() {
	for _, at := range f.replicas {
		at.process.die() // so that nothing begins in its place
	}
	f.stop()
}

// run has a run happen, and returns what was wrong, nil if nothing was.
func (f *fleet) run() error {
	defer f.close()
	end := f.span
	for f.fault == nil && f.next(end) {
		if f.ttl && f.r.IntN(2000) == 0 && f.now > f.span/3 {
			f.ttl = false
			end = f.leap()
		}
	}
	f.over = true
	f.settleDown()
	return f.fault
}
