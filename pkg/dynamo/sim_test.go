package dynamo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
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

// The simulation runs the plans and writes of several replicas on one bucket in one
// goroutine: what happens next is drawn from a seed, time is a number, and every
// message is on its own: applied late, applied twice, its reply lost or late. What
// was decided is then held against the promises, see sim_oracle_test.go.

// features are what can happen in a run.
type features struct {
	refund, charge, ttl, adopt, crash, skew, lost, two, floor, lease, rush bool
}

func drawFeatures(r *rand.Rand) features {
	p := func(percent int) bool { return r.IntN(100) < percent }
	return features{refund: p(50), charge: p(30), ttl: p(40), adopt: p(25), crash: p(30), skew: p(30), lost: p(60), two: p(25), floor: p(20), lease: p(50), rush: p(10)}
}

// sabotage is a rule that a run goes without.
type sabotage struct {
	write     func(*dynamodb.UpdateItemInput) // changes every update
	forgiving bool                            // a ttl is reckoned as if nothing were charged
	neverMove bool                            // rf stays while the stored tokens suffice, also when a limit is full

	unlent   bool // what is granted does not keep its place in the capacity
	still    bool // what a lease has spent is reported without a refill
	early    bool // what a lease has spent is reported at the time of the requests that wait
	immortal bool // leases are served after their time
	twice    bool // a holder whose slot is gone returns what it has left
}

type sim struct {
	features
	sabotage
	r        *rand.Rand
	t        *testing.T
	db       *dynamofake.DB
	key      schema.Key
	unit     int64 // ms
	skews    []int64
	now      int64
	versions []*limiter.Limits // by generation less 1
	replicas []*simReplica
	net      []simMessage
	history
	corrupt error
}

// simReplica is one run of a replica's process.
type simReplica struct {
	index   int
	store   *Store
	lane    *lane
	latest  int // index of the newest limits it knows
	waiting []*request
	flight  *simFlight // the message whose reply it waits for

	hides  string // text of a slot of which the item does not count
	hidden []amount
}

// simFlight is a plan that was sent, or a read.
type simFlight struct {
	plan    plan
	write   *write // nil = a read
	begun   int64
	effects []effect
	spent   []amount // of the own lease, which the write reports
}

// simMessage is a message under way.
type simMessage struct {
	from   *simReplica
	flight *simFlight
	signed int64
}

const (
	simTable = "buckets"
	simStart = int64(4_102_444_800_000)
	simLife  = 40 // units that a message may be under way, and a plan may be old
	simWait  = 10 // units that a request may wait before it is planned
)

func newSim(t *testing.T, seed uint64, f func(*rand.Rand) features, without sabotage) *sim {
	r := rand.New(rand.NewPCG(seed, 0))
	s := &sim{r: r, t: t, db: dynamofake.New(), key: schema.BucketKey("ns", "e", "r", 0, 0), now: simStart, unit: 1, sabotage: without}
	s.account = newAccount()
	if _, err := s.db.CreateTable(t.Context(), TableInput(simTable)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(simTable),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(schema.AttrTTL), Enabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
	if s.features = f(r); s.ttl {
		s.unit = 60_000
	}
	s.versions = append(s.versions, s.drawLimits())
	spread := int64(0)
	if s.skew {
		spread = []int64{3, 10}[r.IntN(2)] * s.unit
	}
	for i := range []int{1, 2, 2, 3}[r.IntN(4)] {
		s.skews = append(s.skews, r.Int64N(2*spread+1)-spread)
		s.replicas = append(s.replicas, s.newReplica(i))
	}
	s.saw()
	return s
}

// newReplica starts a process of a replica. All replicas share a slot, so that they
// wipe out each other's ids.
func (s *sim) newReplica(index int) *simReplica {
	cfg, err := Config{Client: s.db, Table: simTable, Now: s.clock, Leases: s.lease, Logger: slog.New(accountLog{Handler: slog.DiscardHandler, account: &s.account})}.withDefaults()
	if err != nil {
		s.t.Fatal(err)
	}
	store := newStore(cfg, awsdb.Goroutines{}, fmt.Sprint("r", index, ".", s.r.Uint32()))
	store.client, store.stopped, store.slot = s.db, s.t.Context(), 0
	store.leases.owned = true // nothing runs by itself
	l := store.lanes.shard(s.key.PK).lane(s.key, site{bucket: limiter.BucketKey{Entity: "e", Resource: "r"}}, 1)
	return &simReplica{index: index, store: store, lane: l}
}

// drawLimits draws one limit, or two: of few tokens, so that every one counts.
func (s *sim) drawLimits() *limiter.Limits {
	names := []string{"a", "b"}
	if !s.two {
		names = names[:1]
	}
	var limits []limiter.Limit
	for _, name := range names {
		if name == "a" && s.adopt && s.two && s.r.IntN(4) == 0 {
			continue // taken away for a while
		}
		capacity := []int64{4, 10, 20}[s.r.IntN(3)]
		l := limiter.Custom(name, capacity, []int64{143, 333, 1000, 2500}[s.r.IntN(4)], time.Second)
		if s.unit > 1 {
			l = limiter.Custom(name, capacity, []int64{1, 1, 2, 5}[s.r.IntN(4)], time.Duration([]int64{1, 3, 7, 50}[s.r.IntN(4)]*s.unit)*time.Millisecond)
		}
		if s.floor {
			l = l.WithMaxDebt(2)
		}
		limits = append(limits, l)
	}
	set, err := limiter.NewLimits(limits...)
	if err != nil {
		s.t.Fatal(err)
	}
	return set
}

// run runs steps and returns what was wrong, nil if nothing was.
func (s *sim) run() error {
	steps := []int{25, 60, 120}[s.r.IntN(3)]
	elapse := [][]int64{{0, 0, 0, 1}, {0, 0, 1, 3, 10}, {0, 0, 0, 5, 40, 200}}[s.r.IntN(3)]
	if s.rush { // many writes under one rf
		elapse = append(make([]int64, 30), 1)
	}
	for range steps {
		s.now += elapse[s.r.IntN(len(elapse))] * s.unit
		if s.r.IntN(33) == 0 {
			s.now += []int64{80, 300, 2000}[s.r.IntN(3)] * s.unit
		}
		if s.ttl && s.r.IntN(2) == 0 && s.db.Expire(simTable, s.now/1000) > 0 {
			s.saw()
		}
		s.step(s.replicas[s.r.IntN(len(s.replicas))])
		if s.corrupt == nil {
			s.corrupt = s.checkLeases()
		}
		if s.corrupt != nil {
			return s.corrupt
		}
	}
	if err := s.check(); err != nil {
		return err
	}
	return s.settle()
}

func (s *sim) step(r *simReplica) {
	x := s.r.IntN(100)
	if s.rush && x < 30 && s.r.IntN(2) == 0 {
		x += 30
	}
	switch {
	case x < 30:
		if q := s.arrive(r); s.serve(r, q) {
			s.collect(r)
		} else {
			r.waiting = append(r.waiting, q)
		}
	case x < 55:
		if r.flight == nil {
			s.plan(r)
		}
	case x < 85:
		if len(s.net) > 0 {
			s.deliver()
		}
	case x < 92:
		if r.flight != nil && s.lost {
			s.timeout(r)
		}
	case x < 95:
		if s.crash {
			s.replicas[r.index] = s.newReplica(r.index)
			s.replicas[r.index].latest = r.latest
		}
	case x < 98:
		if s.adopt {
			if s.r.IntN(2) == 0 && len(s.versions) < 5 {
				s.versions = append(s.versions, s.drawLimits())
			}
			r.latest += s.r.IntN(len(s.versions) - r.latest)
		}
	}
}

// arrive makes a request: mostly a take.
func (s *sim) arrive(r *simReplica) *request {
	limits := s.versions[r.latest]
	op := limiter.Op{Bucket: limiter.BucketKey{Entity: "e", Resource: "r"}, Limits: limits, Generation: uint64(r.latest) + 1}
	amount := []int64{1000, 1000, 2000, 3000, 1500, 1 + s.r.Int64N(4000)}[s.r.IntN(6)]
	if s.lease && s.r.IntN(2) == 0 {
		amount = 1 + amount/4
	}
	refund := int64(0)
	if s.refund && s.r.IntN(4) == 0 {
		refund = s.refundable(min(amount, 3000))
	}
	var giveBack bool
	only := s.r.IntN(2 * limits.Len()) // one limit, or all
	for i := range limits.Len() {
		if only < limits.Len() && i != only {
			continue
		}
		sp := limiter.Spend{Limit: limits.At(i).Name}
		switch {
		case s.charge && (amount%7 == 1 || amount == 2000):
			sp.Charge = amount
		case refund > 0:
			sp.Refund = refund
		case amount == 1500 && s.r.IntN(3) == 0:
			sp.Take = limits.At(i).Capacity * limiter.Milli
		default:
			sp.Take = amount
		}
		giveBack = sp.Take > 0 && s.refund && s.r.IntN(8) == 0
		op.Spends = append(op.Spends, sp)
	}
	q, err := newRequest(s.now+s.skews[r.index], &op)
	if err != nil {
		s.t.Fatal(err)
	}
	q.call = &call{done: make(chan struct{})}
	q.call.left.Store(1)
	q.expires = time.Now().Add(time.Hour)
	s.asked(q, r, giveBack)
	return q
}

// plan does what a lane does when it has nothing under way.
func (s *sim) plan(r *simReplica) {
	s.expire(r)
	p := s.next(r)
	switch {
	case p.stage != nil:
		if !claim(p.actors) {
			s.t.Fatal("nobody leaves")
		}
		for i := range p.stage.balances {
			b := &p.stage.balances[i]
			b.charged = b.charged && !s.forgiving
		}
		w := newWrite(simTable, s.key, r.store.nextID(nil), &p)
		if s.neverMove && w.update != nil && p.stage.swap == nil && p.step == nil && suffices(p.stage) {
			w.update = plainInput(simTable, s.key, w.writeID, &p)
		}
		if w.update != nil && s.write != nil {
			s.write(w.update)
		}
		s.sent(w, p.actors)
		r.flight = &simFlight{plan: p, write: w, begun: s.now, effects: effectsOf(p.actors)}
		if p.step != nil && p.step.own {
			r.flight.spent = r.lane.knows.lease.spentOf()
		}
		r.store.sendLease(r.lane, p.step, s.clock())
		s.send(r)
	case len(p.rest) > 0:
		r.store.drop(r.lane)
		r.flight = &simFlight{plan: p, begun: s.now}
		s.send(r)
	default:
		r.store.drop(r.lane)
	}
	s.collect(r)
}

// next plans for what waits.
func (s *sim) next(r *simReplica) plan {
	pending := r.lane.answer(r.waiting)
	s.ask(r, pending)
	if s.still && r.lane.knows.lease.own != nil {
		r.waiting = pending
		return r.stillborn()
	}
	r.waiting = nil
	p := r.lane.knows.plan(pending)
	if s.unlent {
		r.conceal(&p)
	}
	return p
}

// stillborn plans only what is done to leases, at the time of the last refill.
func (r *simReplica) stillborn() plan {
	k := r.lane.knows
	k.now, k.lease.now, k.lease.forced = schema.MinTime, 0, true
	return k.plan(nil)
}

// expire drops the requests that have waited for too long, as a lane does: with the
// ttl margin they bound how late a write can arrive.
func (s *sim) expire(r *simReplica) {
	r.waiting = slices.DeleteFunc(r.waiting, func(q *request) bool {
		old := s.now+s.skews[r.index]-q.now > simWait*s.unit
		if old {
			q.done(limiter.ErrUnavailable)
		}
		return old
	})
}

// suffices reports whether a plan could do without the refill that is due.
func suffices(s *stage) bool {
	for i := range s.balances {
		b := &s.balances[i]
		if b.basis == exact || b.raised || b.state.Tokens < b.atLeast || b.basis == full && b.state.Tokens+b.delta < 0 {
			return false
		}
	}
	return true
}

func (s *sim) send(r *simReplica) {
	s.net = append(s.net, simMessage{from: r, flight: r.flight, signed: r.flight.begun})
}

// deliver has any message under way arrive, and its reply, unless it is lost.
func (s *sim) deliver() {
	i := s.r.IntN(len(s.net))
	m := s.net[i]
	s.net = slices.Delete(s.net, i, i+1)
	if s.now-m.signed > simLife*s.unit {
		return
	}
	image, err := s.apply(m)
	if s.lost && s.r.IntN(4) == 0 || s.replicas[m.from.index] != m.from || m.from.flight != m.flight {
		return // nobody hears of it
	}
	r, f := m.from, m.flight
	r.flight = nil
	found, refused := awsdb.ConditionItem(err)
	switch {
	case f.write == nil:
		rest := r.before()
		r.store.saw(r.lane, image)
		s.after(r, rest)
		confirm(f.plan.rest)
		r.waiting = append(f.plan.rest, r.waiting...)
	case refused:
		s.conclude(r, f, r.store.refused(r.lane, f.write, found))
	case err != nil:
		s.t.Fatalf("a write that DynamoDB refuses: %v\n%s\n%s", err, aws.ToString(f.write.update.ConditionExpression), aws.ToString(f.write.update.UpdateExpression))
	default:
		s.conclude(r, f, outcome{applied: true, known: true, image: image})
	}
	s.collect(r)
}

// apply does what a message asks for.
func (s *sim) apply(m simMessage) (*view, error) {
	w, ctx := m.flight.write, context.Background()
	if w == nil {
		return s.item(m.from.lane), nil
	}
	if w.put != nil {
		if _, err := s.db.PutItem(ctx, w.put); err != nil {
			return nil, err
		}
	} else if _, err := s.db.UpdateItem(ctx, w.update); err != nil {
		return nil, err
	}
	s.saw()
	s.applied(m.flight)
	return s.item(m.from.lane), nil
}

// item returns the item as it is.
func (s *sim) item(l *lane) *view {
	out, err := s.db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String(simTable), Key: s.key.Attributes()})
	if err != nil {
		s.t.Fatal(err)
	}
	if out.Item == nil {
		return nil
	}
	var known *limiter.Limits
	if l != nil && l.knows.view != nil {
		known = l.knows.view.limits
	}
	v, err := parseItem(simTable, s.key, out.Item, known)
	if err != nil {
		s.corrupt = err
	}
	return v
}

// timeout is when a replica has waited for long enough.
func (s *sim) timeout(r *simReplica) {
	f := r.flight
	tooOld := s.now-f.begun > simLife*s.unit
	if f.write != nil {
		f.write.doubted = true
	}
	switch {
	case f.write == nil:
		f.begun = s.now
		s.send(r)
		return
	case tooOld && f.write.books:
		r.flight = nil
		s.conclude(r, f, r.store.inquire(r.lane, f.write, errors.New("timeout")))
	case tooOld:
		r.flight = nil
		s.conclude(r, f, outcome{err: limiter.ErrUncertain})
	default:
		s.send(r)
	}
	s.collect(r)
}

func (s *sim) conclude(r *simReplica, f *simFlight, o outcome) {
	if o.err != nil && !errors.Is(o.err, limiter.ErrUncertain) {
		s.corrupt = o.err
	}
	if f.write != nil {
		o.doubted = f.write.doubted
	}
	rest := r.before()
	r.waiting = append(r.store.conclude(r.lane, &f.plan, o), r.waiting...)
	s.after(r, rest)
}
