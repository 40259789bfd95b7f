package embedded

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// In a full store a new key has at most its own limits.
func TestAFullStoreLimitsNewKeys(t *testing.T) {
	var log bytes.Buffer
	s := newStore(t, Config{MaxBuckets: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	limits := limitsOf(t, limiter.PerDay("rpd", 5))
	mustTake(t, s, t0, true, opOf("a", limits, 1), opOf("b", limits, 1))
	for range 5 {
		mustTake(t, s, t0, true, opOf("new", limits, 1))
	}
	mustTake(t, s, t0, false, opOf("new", limits, 1))
	mustTake(t, s, t0, true, opOf("a", limits, 4)) // which has a bucket of its own
	mustTake(t, s, t0, false, opOf("a", limits, 1))
	if got := s.Buckets(); got != 2 {
		t.Errorf("%d buckets, want 2", got)
	}
	if got, want := s.Overflow(), (Overflow{Buckets: 1, Decisions: 6}); got != want {
		t.Errorf("overflow: got %+v, want %+v", got, want)
	}
	if got := strings.Count(log.String(), "max_buckets=2"); got != 1 {
		t.Errorf("logged %d times, want once: %s", got, log.String())
	}
}

// Its parent is charged as ever.
func TestAFullStoreTakesFromParents(t *testing.T) {
	s := newStore(t, Config{MaxBuckets: 1})
	child, parent := limitsOf(t, limiter.PerDay("rpd", 5)), limitsOf(t, limiter.PerDay("rpd", 8))
	for i := range 8 {
		mustTake(t, s, t0, true, opOf("org", parent, 1), opOf("k"+strconv.Itoa(i), child, 1))
	}
	mustTake(t, s, t0, false, opOf("org", parent, 1), opOf("another", child, 1))
}

// When there is room again, a key starts with the balance of its shared bucket.
func TestAKeyLeavesTheOverflow(t *testing.T) {
	s := newStore(t, Config{MaxBuckets: 1})
	limits := limitsOf(t, limiter.PerHour("rph", 5))
	mustTake(t, s, t0, true, opOf("a", limits, 1))
	mustTake(t, s, t0, true, opOf("new", limits, 3))
	now := t0.Add(20 * time.Minute) // a is full, and new has one more
	s.sweep(0, len(s.shards), now.UnixMilli())
	mustTake(t, s, now, true, opOf("new", limits, 3))
	mustTake(t, s, now, false, opOf("new", limits, 1))
	if got := s.Buckets(); got != 1 {
		t.Errorf("%d buckets of its own, want 1", got)
	}
	s.sweep(0, len(s.shards), now.Add(2*time.Hour).UnixMilli())
	if got := s.Overflow().Buckets; got != 0 {
		t.Errorf("%d overflow buckets stay, want none", got)
	}
}

// Refunds to a shared bucket are dropped: other keys could take them.
func TestNothingIsGivenBackToTheOverflow(t *testing.T) {
	s := newStore(t, Config{MaxBuckets: 1})
	limits := limitsOf(t, limiter.PerDay("rpd", 5))
	mustTake(t, s, t0, true, opOf("a", limits, 1))
	mustTake(t, s, t0, true, opOf("new", limits, 5))
	back := opOf("new", limits, 0)
	back.Spends[0].Refund = 5 * limiter.Milli
	mustTake(t, s, t0, true, back)
	mustTake(t, s, t0, false, opOf("new", limits, 1))
	back.Spends[0].Charge = 7 * limiter.Milli // 2 more than was taken
	mustTake(t, s, t0, true, back)
	if got := back.Spends[0].Bucket.Tokens; got != -2*limiter.Milli {
		t.Errorf("charged down to %d, want -2 tokens", got)
	}
}

// Where the table of overflow buckets is full, a key is denied and not unlimited.
func TestAFullOverflowDenies(t *testing.T) {
	s := newStore(t, Config{MaxBuckets: 1, MaxOverflow: 2})
	for i := range 3 {
		limits := limitsOf(t, limiter.PerDay("rpd", int64(10+i)))
		mustTake(t, s, t0, true, opOf("a"+strconv.Itoa(i), limits, 1))
	}
	other := limitsOf(t, limiter.PerDay("rpd", 100))
	op := opOf("new", other, 1)
	mustTake(t, s, t0, false, op)
	if sp := op.Spends[0]; !sp.Held || !sp.Exceeded || sp.Bucket.Tokens != 0 {
		t.Errorf("got %+v, want an empty bucket", sp)
	}
	if got := s.Overflow(); got.Buckets != 2 || got.Refused != 1 {
		t.Errorf("got %+v, want 2 buckets and 1 refused", got)
	}
}

// Two charges of one call are both applied when their keys share a bucket.
func TestChargesOnOneSharedBucket(t *testing.T) {
	limits := limitsOf(t, limiter.PerDay("rpd", 10))
	durable, err := Open(t.TempDir(), Config{MaxBuckets: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = durable.Close(context.Background()) })
	for name, s := range map[string]*Store{"in memory": newStore(t, Config{MaxBuckets: 1}), "with a file": durable} {
		s.overflow.slots = 1
		mustTake(t, s, t0, true, opOf("a", limits, 1))
		one, two := opOf("one", limits, 0), opOf("two", limits, 0)
		one.Spends[0].Charge, two.Spends[0].Charge = 3*limiter.Milli, 4*limiter.Milli
		ops := []limiter.Op{one, two}
		if ok, err := s.Take(t.Context(), t0, ops); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if got := ops[1].Spends[0].Bucket.Tokens; got != 3*limiter.Milli {
			t.Errorf("%s: the second charge leaves %d millitokens, want 3000", name, got)
		}
		mustTake(t, s, t0, false, opOf("two", limits, 4))
		mustTake(t, s, t0, true, opOf("two", limits, 3))
	}
}

// overflowed drives a store with few buckets, and a second one with room for all. The second gets
// only the admitted takes, the charges and the refunds. It must admit all that the first admits,
// because each key has its own limits there.
type overflowed struct {
	t         *testing.T
	rng       *rand.Rand
	take      func(ops []limiter.Op) bool
	room      *Store
	sets      [][]*limiter.Limits // by generation
	now       time.Time
	generaton uint64
	admitted  int
	denied    int
}

func (o *overflowed) step() {
	o.now = o.now.Add(time.Duration(o.rng.Int64N(int64(20 * time.Second))))
	if o.rng.IntN(60) == 0 {
		o.generaton++
	}
	ops := o.ops()
	ok := o.take(ops)
	for i := range ops {
		for j := range ops[i].Spends {
			if sp := &ops[i].Spends[j]; !ok {
				sp.Take, sp.Look = 0, false
			}
		}
	}
	got, err := o.room.Take(context.Background(), o.now, ops)
	if err != nil {
		o.t.Fatal(err)
	}
	if ok && !got {
		o.t.Fatalf("admitted what the key's own limits deny: %+v", ops)
	}
	if ok {
		o.admitted++
	} else {
		o.denied++
	}
}

// ops are of one to three keys; some of several generations are still on their way.
func (o *overflowed) ops() []limiter.Op {
	keys := o.rng.Perm(40)[:1+o.rng.IntN(3)]
	ops := make([]limiter.Op, 0, len(keys))
	books := o.rng.IntN(6) == 0
	for _, k := range keys {
		sets := o.sets[o.generaton%uint64(len(o.sets))]
		limits := sets[k%len(sets)]
		op := limiter.Op{
			Bucket: limiter.BucketKey{Namespace: "default", Entity: fmt.Sprint("key/", k), Resource: "r"},
			Limits: limits, Generation: o.generaton,
		}
		for i := range limits.Len() {
			sp := limiter.Spend{Limit: limits.At(i).Name, Take: o.rng.Int64N(3) * limiter.Milli}
			switch {
			case len(keys) == 1 && o.rng.IntN(4) == 0:
				sp.Refund, sp.Charge = o.rng.Int64N(3)*limiter.Milli, o.rng.Int64N(3)*limiter.Milli
			case books:
				sp.Take, sp.Charge = 0, o.rng.Int64N(3)*limiter.Milli
			}
			op.Spends = append(op.Spends, sp)
		}
		ops = append(ops, op)
	}
	return ops
}

func newOverflowed(t *testing.T, seed uint64) *overflowed {
	t.Helper()
	set := func(limits ...limiter.Limit) *limiter.Limits { return limitsOf(t, limits...) }
	return &overflowed{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), room: newStore(t, Config{}), now: t0, generaton: 1,
		sets: [][]*limiter.Limits{
			{set(limiter.PerMinute("a", 5)), set(limiter.PerMinute("a", 9), limiter.PerHour("b", 20))},
			{set(limiter.PerMinute("a", 3)), set(limiter.PerMinute("a", 9))},
			{set(limiter.PerMinute("a", 9), limiter.PerHour("b", 20)), set(limiter.PerMinute("a", 5))},
		},
	}
}

// Keys that share buckets never get more than their own limits give them.
func TestOverflowNeverOverAdmits(t *testing.T) {
	for seed := range uint64(30) {
		o := newOverflowed(t, seed)
		s := newStore(t, Config{MaxBuckets: 8, SweepInterval: 24 * time.Hour, Now: func() time.Time { return o.now }})
		s.overflow.slots = 4 // so that keys meet
		o.take = func(ops []limiter.Op) bool {
			ok, err := s.Take(context.Background(), o.now, slices.Clone(ops))
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		for i := range 1500 {
			o.step()
			if i%40 == 0 {
				s.sweep(0, len(s.shards), o.now.UnixMilli())
			}
		}
		if got := s.Overflow(); o.admitted < 100 || o.denied < 100 || got.Decisions < 500 || s.Buckets() > 8 {
			t.Fatalf("seed %d: %d admitted, %d denied, %+v: the test is too tame", seed, o.admitted, o.denied, got)
		}
	}
}

// Nor do they when the process dies or stops at any time.
func TestDurableOverflowNeverOverAdmits(t *testing.T) {
	for seed := range uint64(6) {
		o := newOverflowed(t, seed)
		l := newNode(t)
		few := func() { l.store.cfg.MaxBuckets, l.store.overflow.slots = 8, 4 }
		few()
		o.take = func(ops []limiter.Op) bool {
			l.now = o.now
			for range 5 {
				got, err := l.store.tryAll(l.now.UnixMilli(), ops)
				if err != nil {
					t.Fatal(err)
				}
				l.write()
				if got.done {
					for _, i := range got.later {
						o.take(ops[i : i+1])
					}
					return got.admitted
				}
			}
			t.Fatal("a take waits forever")
			return false
		}
		kept := 0
		for i := range 300 {
			o.step()
			switch {
			case i%50 == 25:
				l.kill(0)
				kept += int(l.store.Overflow().Buckets)
				few()
			case i%50 == 49:
				l.stop(0)
				kept += int(l.store.Overflow().Buckets)
				few()
			case i%20 == 0:
				l.store.sweep(0, len(l.store.shards), l.now.UnixMilli())
				l.write()
			}
		}
		if o.admitted < 20 || o.denied < 5 || kept == 0 {
			t.Fatalf("seed %d: %d admitted, %d denied, %d overflow buckets in files: the test is too tame", seed, o.admitted, o.denied, kept)
		}
	}
}

// A refund that is dropped covers nothing after a crash.
func TestACrashOfAnOverflowBucket(t *testing.T) {
	l := newNode(t)
	l.store.cfg.MaxBuckets = 1
	limits := limitsOf(t, limiter.PerDay("rpd", 100))
	l.take(true, opOf("a", limits, 1))
	for range 60 {
		op := opOf("new", limits, 1)
		l.take(true, op)
		op.Spends[0].Take, op.Spends[0].Refund = 0, limiter.Milli
		l.take(true, op)
	}
	l.kill(0)
	l.take(false, opOf("new", limits, 41))
}
