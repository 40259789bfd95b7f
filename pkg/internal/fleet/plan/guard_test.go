package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// bench is a bucket of ten tokens, one every 100 ms, that is empty at its epoch.
type bench struct {
	*testing.T
	*world
	state *schema.Bucket
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, world: newWorld(t)}
	b.land(takes(t, schema.NewBucket(limitsOf(t, limiter.PerSecond("l", 10)), 1, epoch), epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "l", Take: 10_000}))
	return b
}

func (b *bench) Helper()                      { b.T.Helper() }
func (b *bench) Fatalf(s string, args ...any) { b.T.Helper(); b.T.Fatalf(s, args...) }

// land sends a write that must be applied.
func (b *bench) land(w *plan.Write) {
	b.Helper()
	landed, image := b.send(w, 0)
	if !landed {
		b.Fatalf("a write was refused")
	}
	b.state = image
}

// refused sends a write that must be refused.
func (b *bench) refused(w *plan.Write) {
	b.Helper()
	if landed, _ := b.send(w, 0); landed {
		b.Fatalf("a write was applied to a state that it does not fit")
	}
}

// spend plans one spend of the limit on the state.
func (b *bench) spend(at int64, replica uint32, sp limiter.Spend) *plan.Write {
	b.Helper()
	sp.Limit = "l"
	return takes(b, b.state, epoch+at, plan.Options{}, b.id(replica), sp)
}

// lease plans a lease write of a replica.
func (b *bench) lease(at int64, replica uint32, rate, room int, millitokens int64) *plan.Write {
	b.Helper()
	st := plan.NewStage(b.state, epoch+at, plan.Options{})
	q := plan.LeaseWrite{Replica: replica, Seen: b.state.Lease(replica), Draw: []int64{millitokens}}
	if rate+room > 0 {
		q.Lease = &schema.Lease{Replica: replica, Sequence: 1, Rate: rate, Room: room}
		if q.Seen != nil {
			q.Lease.Sequence = q.Seen.Sequence + 1
		}
	}
	if err := st.Lease(q); err != nil {
		b.Fatalf("%v", err)
	}
	return st.Write(b.id(replica), 1)
}

// bring plans a change of the limit to 20 a second.
func (b *bench) bring(at int64) *plan.Write {
	b.Helper()
	st := plan.NewStage(b.state, epoch+at, plan.Options{})
	got, err := st.Bring(limitsOf(b, limiter.PerSecond("l", 20)), b.state.Version.Generation+1)
	if err != nil || got != plan.Newer {
		b.Fatalf("Bring: %d, %v", got, err)
	}
	return st.Write(b.id(2), 1)
}

func (b *bench) must(w *plan.Write, err error) *plan.Write {
	b.Helper()
	if err != nil {
		b.Fatalf("%v", err)
	}
	return w
}

// TestWritesThatDoNotFitAreRefused: a write is applied only to a state that it is right for.
// Each case is a guard of docs/design/leases.md.
func TestWritesThatDoNotFitAreRefused(t *testing.T) {
	take := func(n int64) limiter.Spend { return limiter.Spend{Take: n} }
	for _, tt := range []struct {
		name    string
		planned func(b *bench) *plan.Write // from the first state
		between func(b *bench) *plan.Write // applied before it
	}{
		{
			"busy write has a floor",
			func(b *bench) *plan.Write { return b.spend(900, 2, take(500)) },
			func(b *bench) *plan.Write { return b.spend(900, 3, limiter.Spend{Refund: 2000}) },
		},
		{
			"take has a bound",
			func(b *bench) *plan.Write { return b.spend(500, 2, take(5000)) },
			func(b *bench) *plan.Write { return b.spend(500, 3, take(1)) },
		},
		{
			"lift has a bound",
			func(b *bench) *plan.Write { return b.spend(1500, 2, take(5000)) },
			func(b *bench) *plan.Write { return b.spend(1501, 3, take(1)) },
		},
		{
			"charge has a floor",
			func(b *bench) *plan.Write { return b.spend(900, 2, limiter.Spend{Charge: 500}) },
			func(b *bench) *plan.Write { return b.spend(900, 3, limiter.Spend{Refund: 2000}) },
		},
		{
			"charge keeps to the debt floor",
			func(b *bench) *plan.Write { return b.spend(0, 2, limiter.Spend{Charge: 100_000}) },
			func(b *bench) *plan.Write { return b.spend(0, 3, limiter.Spend{Charge: 1}) },
		},
		{
			"take pins the line",
			func(b *bench) *plan.Write { return b.spend(500, 2, take(1)) },
			func(b *bench) *plan.Write { return b.lease(100, 3, 500, 0, 0) },
		},
		{
			"take holds the room",
			func(b *bench) *plan.Write { return b.spend(500, 2, take(1)) },
			func(b *bench) *plan.Write { return b.lease(100, 3, 0, 500, 0) },
		},
		{
			"take holds the room that goes with its tokens",
			func(b *bench) *plan.Write { return b.spend(500, 2, take(3000)) },
			func(b *bench) *plan.Write { return b.lease(600, 3, 0, 500, 5000) },
		},
		{
			"lease write pins the line and its slot",
			func(b *bench) *plan.Write { return b.lease(500, 2, 800, 800, 1000) },
			func(b *bench) *plan.Write { return b.lease(500, 3, 100, 100, 1000) },
		},
		{
			"lease write pins v",
			func(b *bench) *plan.Write { return b.lease(500, 2, 800, 800, 5000) },
			func(b *bench) *plan.Write { return b.spend(500, 3, take(1)) },
		},
		{
			"change of limits pins v",
			func(b *bench) *plan.Write { return b.bring(500) },
			func(b *bench) *plan.Write { return b.spend(500, 3, take(1)) },
		},
		{
			"write pins the version",
			func(b *bench) *plan.Write { return b.spend(500, 2, take(1)) },
			func(b *bench) *plan.Write { return b.bring(500) },
		},
		{
			"refund pins the version",
			func(b *bench) *plan.Write { return b.spend(500, 2, limiter.Spend{Refund: 1}) },
			func(b *bench) *plan.Write { return b.bring(500) },
		},
		{
			"split pins v",
			func(b *bench) *plan.Write { return b.must(plan.Split(b.state, epoch+500, 1)) },
			func(b *bench) *plan.Write { return b.spend(500, 3, take(1)) },
		},
		{
			"write pins the epoch",
			func(b *bench) *plan.Write { return b.spend(500, 2, take(1)) },
			func(b *bench) *plan.Write { return b.must(plan.Split(b.state, epoch+500, 1)) },
		},
		{
			"generation does not fall",
			func(b *bench) *plan.Write { return b.raise(2) },
			func(b *bench) *plan.Write { return b.raise(3) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			late, between := tt.planned(b), tt.between(b)
			b.land(between)
			b.refused(late)
			again := newBench(t) // alone it is applied
			again.land(tt.planned(again))
		})
	}
}

// raise plans a take that brings a greater generation of the same limits.
func (b *bench) raise(generation uint64) *plan.Write {
	st := plan.NewStage(b.state, epoch+500, plan.Options{})
	if _, err := st.Bring(b.state.Limits, generation); err != nil {
		b.Fatalf("%v", err)
	}
	_, r := op(b, b.state.Limits, generation, limiter.Spend{Limit: "l", Take: 1})
	st.Weigh(r)
	st.Apply(r)
	return st.Write(b.id(uint32(generation)), 1) // #nosec G115 -- few
}

// TestTakesCommute: takes that were planned from one state are all applied, where there is
// enough for all of them. The answer to each has the rest that it left.
func TestTakesCommute(t *testing.T) {
	b := newBench(t)
	writes := make([]*plan.Write, 0, 5)
	for i := range uint32(5) {
		writes = append(writes, b.spend(500, i, limiter.Spend{Take: 1000}))
	}
	for _, w := range writes {
		b.land(w)
	}
	if got := plan.At(b.state, epoch+500).Tokens(0, epoch+500); got != 0 {
		t.Errorf("%d millitokens are left, want 0", got)
	}
	b.refused(b.spendOn(writes[0].After(), 500, 6, limiter.Spend{Take: 1000}))
}

// spendOn is spend on another state.
func (b *bench) spendOn(state *schema.Bucket, at int64, replica uint32, sp limiter.Spend) *plan.Write {
	sp.Limit = "l"
	return takes(b, state, epoch+at, plan.Options{}, b.id(replica), sp)
}

// TestALiftGoesToItsBound: a lift that finds the take of another one raises v by its own.
func TestALiftGoesToItsBound(t *testing.T) {
	b := newBench(t)
	late := takes(b, b.state, epoch+2000, plan.Options{Lift: 200, Guard: 100}, b.id(2), limiter.Spend{Limit: "l", Take: 1000})
	b.land(b.spend(2000, 3, limiter.Spend{Take: 1000}))
	b.land(late)
	if got := plan.At(b.state, epoch+2000).Tokens(0, epoch+2000); got > 8000 {
		t.Errorf("%d millitokens are left after two takes, want 8000 at most", got)
	}
}

// TestCopiesOfChargesAreRefused: a charge and a refund are applied once, also where a late
// copy of an older take puts its own id back.
func TestCopiesOfChargesAreRefused(t *testing.T) {
	for name, sp := range map[string]limiter.Spend{"charge": {Charge: 1000}, "refund": {Refund: 1000}} {
		t.Run(name+" pins its own id", func(t *testing.T) {
			b := newBench(t)
			first := b.spend(900, 2, limiter.Spend{Take: 1000})
			b.land(first)
			books := b.spend(900, 2, sp)
			b.land(books)
			b.land(b.spend(900, 2, limiter.Spend{Take: 1}))
			b.land(first) // the late copy: another take took its place
			b.refused(books)
			if got := books.Outcome(b.state); got != plan.Landed {
				t.Errorf("the outcome is %d, want %d", got, plan.Landed)
			}
		})
	}
	t.Run("take has its own id", func(t *testing.T) {
		b := newBench(t)
		w := b.spend(900, 2, limiter.Spend{Take: 1000})
		b.land(w)
		b.refused(w)
	})
}

// TestGivenRateIsGoneFromThePlan: the clock of the centre has no jump where a lease takes
// rate or gives it back, and runs by the parts that are there.
func TestGivenRateIsGoneFromThePlan(t *testing.T) {
	b := newBench(t)
	tokens := func(at int64) int64 { return plan.At(b.state, epoch+at).Tokens(0, epoch+at) }
	b.land(b.lease(100, 2, 400, 400, 1000))
	if got, after := tokens(100), tokens(300); got != 0 || after != 1200 {
		t.Errorf("the centre has %d, and 200 ms later %d millitokens, want 0 and 1200", got, after)
	}
	b.land(b.lease(300, 2, 0, 0, -500))
	if got, after := tokens(300), tokens(400); got != 1700 || after != 2700 {
		t.Errorf("after the return the centre has %d, and 100 ms later %d millitokens, want 1700 and 2700", got, after)
	}
	if b.state.Leased() || b.state.Line != schema.WholeLine() {
		t.Errorf("after the return the line is %+v, leases %v", b.state.Line, b.state.Leases)
	}
}

// TestTokensThatComeBackRaiseTheEpoch: a take that was planned before has none of them.
func TestTokensThatComeBackRaiseTheEpoch(t *testing.T) {
	b := newBench(t)
	b.land(b.lease(500, 2, 400, 400, 2000))
	early := b.spend(510, 3, limiter.Spend{Take: 1000})
	b.land(b.lease(600, 2, 400, 400, -1000))
	b.refused(early)
}

// TestAReapCountsAsSpent: the room of a dead holder comes back empty, its rate from the plan on.
func TestAReapCountsAsSpent(t *testing.T) {
	b := newBench(t)
	b.land(b.lease(500, 2, 400, 400, 2000))
	if got := plan.At(b.state, epoch+600).Tokens(0, epoch+600); got != 3600 {
		t.Errorf("beside the lease the centre has %d millitokens, want 3600", got)
	}
	st := plan.NewStage(b.state, epoch+600, plan.Options{})
	if err := st.Lease(plan.LeaseWrite{Replica: 2, Seen: b.state.Lease(2)}); err != nil {
		t.Fatal(err)
	}
	b.land(st.Write(b.id(3), 1))
	if got := plan.At(b.state, epoch+600).Tokens(0, epoch+600); got != 3600 {
		t.Errorf("the centre has %d millitokens, want the 3600 that it had", got)
	}
	if got := plan.At(b.state, epoch+700).Tokens(0, epoch+700); got != 4600 {
		t.Errorf("100 ms later the centre has %d millitokens, want 4600", got)
	}
}

// TestLeasesThatDoNotFitAreRefused: a lease write names the state that it finds, and takes
// only tokens that are there.
func TestLeasesThatDoNotFitAreRefused(t *testing.T) {
	b := newBench(t)
	b.land(b.lease(500, 2, 400, 400, 2000))
	held := *b.state.Lease(2)
	renewed := held
	renewed.Sequence++
	for name, q := range map[string]plan.LeaseWrite{
		"reap pins the id":        {Replica: 2, Seen: &renewed},
		"grant on a slot":         {Replica: 2, Lease: &renewed},
		"renewal of none":         {Replica: 3, Seen: &held, Lease: &renewed},
		"more rate than there is": {Replica: 3, Lease: &schema.Lease{Rate: 601}},
		"more room than there is": {Replica: 3, Lease: &schema.Lease{Room: 601}},
		"more than there is":      {Replica: 3, Lease: &schema.Lease{Room: 600}, Draw: []int64{3001}},
		"less than nothing":       {Replica: 3, Lease: &schema.Lease{Rate: -1}},
	} {
		st := plan.NewStage(b.state, epoch+500, plan.Options{})
		if err := st.Lease(q); !errors.Is(err, plan.ErrLease) {
			t.Errorf("%s: %v, want %v", name, err, plan.ErrLease)
		}
		if st.Write(b.id(1), 1) != nil {
			t.Errorf("%s: there is a write all the same", name)
		}
	}
	full := *b.state
	full.Leases = make([]schema.Lease, schema.MaxLeases)
	if err := plan.NewStage(&full, epoch+500, plan.Options{}).Lease(plan.LeaseWrite{Replica: 99, Lease: &schema.Lease{}}); !errors.Is(err, plan.ErrLease) {
		t.Errorf("a lease beside %d: %v, want %v", schema.MaxLeases, err, plan.ErrLease)
	}
}

// TestLimitsWaitForLeases: while parts are out the bucket stays under its limits and asks for
// them; with the return they change, in the same write.
func TestLimitsWaitForLeases(t *testing.T) {
	b := newBench(t)
	b.land(b.lease(500, 2, 400, 400, 2000))
	next := limitsOf(t, limiter.PerSecond("l", 20))
	st := plan.NewStage(b.state, epoch+500, plan.Options{})
	if got, err := st.Bring(next, 7); got != plan.Pending || err != nil {
		t.Fatalf("Bring: %d, %v, want %d", got, err, plan.Pending)
	}
	b.land(st.Write(b.id(1), 1))
	if b.state.Pending != 7 || b.state.Limits.At(0).Capacity != 10 || !b.state.Leased() {
		t.Fatalf("the bucket is under %v, pending %d, leases %v", b.state.Limits.At(0), b.state.Pending, b.state.Leases)
	}
	st = plan.NewStage(b.state, epoch+500, plan.Options{})
	if err := st.Lease(plan.LeaseWrite{Replica: 2, Seen: b.state.Lease(2), Draw: []int64{-2000}}); err != nil {
		t.Fatal(err)
	}
	if got, err := st.Bring(next, 7); got != plan.Newer || err != nil {
		t.Fatalf("Bring: %d, %v, want %d", got, err, plan.Newer)
	}
	b.land(st.Write(b.id(2), 1))
	if got := plan.At(b.state, epoch+500).Tokens(0, epoch+500); got != 15_000 || b.state.Pending != 0 {
		t.Errorf("under the new limits there are %d millitokens, want 5000 and the 10000 that the capacity was raised by", got)
	}
}

// TestShardsWithLeasesStay: a shard with leases is neither split nor retired. None is made,
// cleared or absorbed that is not under way.
func TestShardsWithLeasesStay(t *testing.T) {
	b := newBench(t)
	b.land(b.must(plan.Split(b.state, epoch+500, 1)))
	stays := b.state
	other, err := plan.Make(stays)
	if err != nil {
		t.Fatal(err)
	}
	leased := func(s *schema.Bucket) *schema.Bucket {
		c := *s
		c.Leases = []schema.Lease{{Replica: 1}}
		return &c
	}
	cleared := b.must(plan.Clear(stays, 1)).After()
	retired := b.must(plan.Retire(other, epoch+500, 1)).After()
	earlier, later := *retired, *retired
	earlier.Shard.Birth--
	later.Version.Generation, later.Version.Hash = 9, 1
	for name, do := range map[string]func() (*plan.Write, error){
		"split without leases":       func() (*plan.Write, error) { return plan.Split(leased(cleared), epoch+500, 1) },
		"retire without leases":      func() (*plan.Write, error) { return plan.Retire(leased(other), epoch+500, 1) },
		"absorb without leases":      func() (*plan.Write, error) { return plan.Absorb(leased(cleared), retired, epoch+500, 1) },
		"absorb while a half moves":  func() (*plan.Write, error) { return plan.Absorb(stays, retired, epoch+500, 1) },
		"absorb needs a newer child": func() (*plan.Write, error) { return plan.Absorb(cleared, &earlier, epoch+500, 1) },
		"absorb a shard that lives":  func() (*plan.Write, error) { return plan.Absorb(cleared, other, epoch+500, 1) },
		"absorb under older limits":  func() (*plan.Write, error) { return plan.Absorb(cleared, &later, epoch+500, 1) },
		"absorb of a whole bucket":   func() (*plan.Write, error) { return plan.Absorb(newBench(t).state, nil, epoch+500, 1) },
		"retire of the first shard":  func() (*plan.Write, error) { return plan.Retire(cleared, epoch+500, 1) },
		"split while a half moves":   func() (*plan.Write, error) { return plan.Split(stays, epoch+500, 1) },
		"clear of nothing":           func() (*plan.Write, error) { return plan.Clear(cleared, 1) },
		"split of less than a token": func() (*plan.Write, error) { return plan.Split(newBenchOf(t, 1).state, epoch+500, 1) },
	} {
		if _, err := do(); !errors.Is(err, plan.ErrShard) {
			t.Errorf("%s: %v, want %v", name, err, plan.ErrShard)
		}
	}
	if v := plan.NewStage(retired, epoch+600, plan.Options{}).Weigh(request(t, retired.Limits)); v != plan.Elsewhere {
		t.Errorf("a take of a retired shard: %d, want %d", v, plan.Elsewhere)
	}
}

func request(t *testing.T, limits *limiter.Limits) *plan.Request {
	t.Helper()
	_, r := op(t, limits, 1, limiter.Spend{Limit: "l", Take: 1})
	return r
}

// newBenchOf is newBench of another capacity.
func newBenchOf(t *testing.T, capacity int64) *bench {
	t.Helper()
	b := &bench{T: t, world: newWorld(t)}
	b.land(takes(t, schema.NewBucket(limitsOf(t, limiter.Custom("l", capacity, 1, time.Second)), 1, epoch), epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "l", Take: 1}))
	return b
}
