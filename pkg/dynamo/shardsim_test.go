package dynamo

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The simulation of shards runs the stores of several replicas on one bucket, with
// their lanes, chores and trees as they are, one step at a time: each lane is a
// coroutine that stops at every message it sends, see shardsim_net_test.go. What
// happens next is drawn from a number, and time is a number. What the items are is
// held against one bucket after every change, see shardsim_oracle_test.go.

// shardFeatures are what can happen in a run.
type shardFeatures struct {
	refund, charge, ttl, crash, skew, lost, two, floor bool

	adopt bool // limits change
	drop  bool // limits go, and come again as they were
}

func drawShardFeatures(r *rand.Rand) shardFeatures {
	p := func(percent int) bool { return r.IntN(100) < percent }
	f := shardFeatures{refund: p(50), charge: p(30), ttl: p(30), crash: p(20), skew: p(25), lost: p(60), two: p(30), floor: p(20), adopt: p(20), drop: p(15)}
	f.drop = f.drop && !f.adopt
	f.two = f.two || f.drop
	return f
}

// shardSabotage is a rule that a run goes without.
type shardSabotage struct {
	update func(*dynamodb.UpdateItemInput)
	put    func(*dynamodb.PutItemInput)
	lane   func(*lane)                       // before its next step
	get    func(s *shardSim, index int) bool // before a read; true: it finds nothing
	after  func(*shardSim)                   // after a write was applied
}

type shardSim struct {
	shardFeatures
	shardSabotage
	r        *rand.Rand
	leaving  *rand.Rand // nil = callers wait for their answers
	t        *testing.T
	db       *dynamofake.DB
	site     site
	unit     int64 // ms
	now      int64
	skews    []int64
	versions []*limiter.Limits // by generation less 1
	replicas []*shardReplica
	net      []*shardMessage
	current  *shardRun // the coroutine that runs
	shardHistory
}

// shardReplica is one run of a replica's process.
type shardReplica struct {
	index  int
	store  *Store
	lanes  []*shardLane
	latest int // index of the newest limits it knows
}

// shardLane is a lane of a replica, for one shard.
type shardLane struct {
	*lane
	replica *shardReplica
	pending []*request
	run     *shardRun // its step, when that waits for a reply
}

// shardCall is a Take.
type shardCall struct {
	*call
	replica *shardReplica
	ops     []limiter.Op
	over    bool
	back    bool  // another bucket will have denied
	left    int64 // of what it took, not yet refunded

	died     bool // its process has ended
	told     bool // the rest is set
	admitted bool
	err      error
}

const (
	simQuiet  = 4  // units
	shardLife = 20 // units that a message may be under way, and a request wait
)

func newShardSim(t *testing.T, seed uint64, f func(*rand.Rand) shardFeatures, without shardSabotage) *shardSim {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &shardSim{
		r: r, t: t, db: dynamofake.New(), now: simStart, unit: 1000, shardSabotage: without,
		site: site{ns: "ns", bucket: limiter.BucketKey{Entity: "e", Resource: "r"}},
	}
	if _, err := s.db.CreateTable(t.Context(), TableInput(simTable)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(simTable),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(schema.AttrTTL), Enabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
	if leaving := rand.New(rand.NewPCG(seed, 2)); leaving.IntN(4) == 0 {
		s.leaving = leaving
	}
	if s.shardFeatures = f(r); s.ttl {
		s.unit = 60_000
	}
	s.drawFirst()
	for i := range []int{1, 2, 2, 3}[r.IntN(4)] {
		skew := int64(0)
		if s.skew {
			skew = r.Int64N(20*s.unit) - 10*s.unit
		}
		s.skews = append(s.skews, skew)
		s.replicas = append(s.replicas, s.newReplica(i))
	}
	s.begin()
	return s
}

// newReplica starts a process of a replica. All replicas share a slot, so that they
// wipe out each other's ids. Its lanes count as running, so that nobody else runs
// them; its context is done, so that it waits for nothing.
func (s *shardSim) newReplica(index int) *shardReplica {
	cfg, err := Config{
		Client: shardClient{DB: s.db, sim: s}, Table: simTable, ShardUnits: 1 << 40, Quiet: time.Duration(simQuiet*s.unit) * time.Millisecond,
		Idle: 10_000 * time.Hour, Logger: slog.New(accountLog{Handler: slog.DiscardHandler, account: &s.account}),
		Now: func() time.Time { return time.UnixMilli(s.now + s.skews[index]) },
	}.withDefaults()
	if err != nil {
		s.t.Fatal(err)
	}
	cfg.Budget = time.Duration(shardLife*s.unit) * time.Millisecond
	store := &Store{cfg: cfg, loop: awsdb.Goroutines{}, client: cfg.Client, stopped: doneContext(), replica: fmt.Sprint("r", index, ".", s.r.Uint32()), slots: 1, prefer: s.r.IntN(schema.MaxShards)}
	store.lanes.init(laneShards * schema.MaxShards)
	r := &shardReplica{index: index, store: store}
	for i := range schema.MaxShards {
		k := s.site.shard(i)
		sh := store.lanes.shard(k.PK)
		l := sh.lane(k, s.site, schema.MaxShards)
		l.start()
		r.lanes = append(r.lanes, &shardLane{lane: l, replica: r})
	}
	return r
}

// drawFirst draws the limits: of few tokens, so that every one counts.
func (s *shardSim) drawFirst() {
	limits := []limiter.Limit{s.drawLimit("a")}
	if s.two {
		limits = append(limits, s.drawLimit("b"))
	}
	s.versions = append(s.versions, s.limitsOf(limits...))
}

func (s *shardSim) drawLimit(name string) limiter.Limit {
	period := []int64{1, 3, 7, 50, 400}[s.r.IntN(5)] * s.unit
	l := limiter.Custom(name, []int64{2, 5, 8, 11, 17, 40}[s.r.IntN(6)], []int64{1, 1, 2, 5}[s.r.IntN(4)], time.Duration(period)*time.Millisecond)
	if s.floor {
		l = l.WithMaxDebt(3)
	}
	return l
}

// drawNext draws other limits: others of the same names, or some of the first ones.
func (s *shardSim) drawNext() {
	first := s.versions[0]
	var limits []limiter.Limit
	for i := range first.Len() {
		switch {
		case s.adopt:
			limits = append(limits, s.drawLimit(first.At(i).Name))
		case len(limits) == 0 && i+1 == first.Len() || s.r.IntN(2) == 0:
			limits = append(limits, first.At(i))
		}
	}
	s.versions = append(s.versions, s.limitsOf(limits...))
}

func (s *shardSim) limitsOf(limits ...limiter.Limit) *limiter.Limits {
	set, err := limiter.NewLimits(limits...)
	if err != nil {
		s.t.Fatal(err)
	}
	return set
}

// run runs steps and returns what was wrong, nil if nothing was.
func (s *shardSim) run() error {
	defer s.stop()
	steps := []int{80, 200, 400}[s.r.IntN(3)]
	elapse := [][]int64{{1}, {1, 3, 10}, {5, 40}}[s.r.IntN(3)]
	still := []int{6, 20, 60}[s.r.IntN(3)] // steps of a moment
	shaping := []int{4, 12, 25}[s.r.IntN(3)]
	for range steps {
		if s.r.IntN(still) == 0 {
			s.now += elapse[s.r.IntN(len(elapse))]*s.unit + s.r.Int64N(s.unit)
		}
		if s.r.IntN(80) == 0 {
			s.now += []int64{80, 300, 2000}[s.r.IntN(3)] * s.unit
		}
		if s.ttl && s.r.IntN(4) == 0 && s.db.Expire(simTable, s.now/1000) > 0 {
			s.expired()
		}
		if s.r.IntN(100) < shaping {
			s.shape(s.replicas[s.r.IntN(len(s.replicas))])
		} else {
			s.step(s.replicas[s.r.IntN(len(s.replicas))])
		}
		if s.leaving != nil && s.leaving.IntN(8) == 0 {
			s.walkAway()
		}
		if s.fault != nil {
			return s.fault
		}
	}
	return s.settle()
}

func (s *shardSim) step(r *shardReplica) {
	switch x := s.r.IntN(100); {
	case x < 18:
		s.arrive(r)
	case x < 55:
		if l := s.drawActive(r); l != nil {
			s.work(l)
		}
	case x < 90:
		if len(s.net) > 0 {
			s.deliver(s.r.IntN(len(s.net)))
		}
	case x < 94:
		if len(s.net) > 0 && s.lost {
			s.timeout(s.net[s.r.IntN(len(s.net))])
		}
	case x < 95:
		if s.crash {
			s.die(r)
			s.replicas[r.index] = s.newReplica(r.index)
			s.replicas[r.index].latest = r.latest
		}
	case x < 98:
		if s.adopt || s.drop {
			if s.r.IntN(2) == 0 && len(s.versions) < 5 {
				s.drawNext()
			}
			r.latest += s.r.IntN(len(s.versions) - r.latest)
		}
	default:
		r.store.tendTrees(r.store.cfg.Now())
	}
}

// shape makes shards busy, or all quiet, as one replica sees them.
func (s *shardSim) shape(r *shardReplica) {
	if s.r.IntN(4) > 0 {
		all := s.r.IntN(2) == 0
		for _, l := range r.lanes {
			l.load.busy = l.load.busy || l.knows.view != nil && (all || s.r.IntN(4) == 0)
		}
		return
	}
	t := r.store.forest.find(s.site.shard(0).PK)
	if t == nil {
		return
	}
	for i, seen := range t.seen {
		seen.quiet = time.Time{}
		t.seen[i] = seen
	}
	for _, l := range r.lanes {
		l.load.quiet = time.Time{}
	}
	r.store.tendTrees(r.store.cfg.Now())
}

// arrive makes a call: mostly a take.
func (s *shardSim) arrive(r *shardReplica) {
	limits := s.versions[r.latest]
	op := limiter.Op{Bucket: s.site.bucket, Limits: limits, Generation: uint64(r.latest) + 1}
	kind := s.r.IntN(12)
	amount := []int64{1000, 1000, 2000, 3000, 1500, 1 + s.r.Int64N(4000)}[s.r.IntN(6)]
	refund := int64(0)
	if s.refund && kind < 3 {
		refund, op.Shard = s.refundable(amount)
	}
	only := s.r.IntN(2 * limits.Len()) // one limit, or all
	for i := range limits.Len() {
		if only < limits.Len() && i != only {
			continue
		}
		sp := limiter.Spend{Limit: limits.At(i).Name}
		whole := limits.At(i).Capacity * limiter.Milli
		switch {
		case refund > 0:
			sp.Refund = refund
		case s.charge && kind == 3:
			sp.Charge = amount
		case kind == 4:
			sp.Take = whole
		case kind == 5:
			sp.Take = 1 + s.r.Int64N(whole)
		case kind == 6:
			sp.Look = true
		default:
			sp.Take = min(amount, whole)
		}
		op.Spends = append(op.Spends, sp)
	}
	s.ask(r, op, s.refund && kind > 6 && s.r.IntN(5) == 0)
}

// ask begins a Take.
func (s *shardSim) ask(r *shardReplica, op limiter.Op, back bool) {
	c, err := newCall(s.now+s.skews[r.index], []limiter.Op{op})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, b := range c.branches {
		b.site.ns, b.op.ns, b.now = s.site.ns, s.site.ns, s.now+s.skews[r.index]
	}
	asked := &shardCall{call: c, replica: r, ops: []limiter.Op{op}, back: back}
	s.calls = append(s.calls, asked)
	s.advance(asked)
}

// advance sends the next requests of a call that waits for none, or decides it.
func (s *shardSim) advance(c *shardCall) {
	store := c.replica.store
	if c.next(&store.forest, store.cfg.Now()) {
		for _, r := range c.sent {
			r.expires = store.cfg.Now().Add(store.cfg.Budget)
			store.queue(r)
		}
		return
	}
	c.over = true
	c.leave()
	if c.told = true; c.back {
		for _, r := range c.all() {
			store.giveBack(r)
		}
		return
	}
	admitted, err := store.decide(c.call, c.ops)
	c.admitted, c.err = admitted, err
	s.decided(c, admitted, err)
}

// walkAway has a caller leave before its answer.
func (s *shardSim) walkAway() {
	for _, c := range s.calls {
		if !c.over && s.leaving.IntN(3) == 0 {
			c.over, c.told = true, true
			c.err = c.replica.store.abandon(doneContext(), c.call)
			c.leave()
			return
		}
	}
}

// drawActive returns a lane of a replica that has something to do, nil if none has.
func (s *shardSim) drawActive(r *shardReplica) *shardLane {
	var active []*shardLane
	for _, l := range r.lanes {
		if l.active() {
			active = append(active, l)
		}
	}
	if len(active) == 0 {
		return nil
	}
	return active[s.r.IntN(len(active))]
}

func (l *shardLane) active() bool {
	if l.run != nil {
		return l.run.message.answered
	}
	return len(l.pending)+len(l.queue)+len(l.chores)+len(l.todo) > 0
}

// work does for a lane what its goroutine would do next.
func (s *shardSim) work(l *shardLane) {
	store := l.replica.store
	if l.run == nil {
		l.pending = l.answer(l.pending)
		arrived, _ := store.lanes.next(l.lane, false, store.cfg.Now)
		if l.pending = append(l.pending, arrived...); len(l.pending)+len(l.todo) > 0 {
			if s.lane != nil {
				s.lane(l.lane)
			}
			s.start(l)
		}
	} else {
		s.resume(l.run)
	}
	for _, c := range s.calls {
		if !c.over && c.replica == l.replica && c.call.left.Load() == 0 {
			c.harvest()
			s.advance(c)
		}
	}
}
