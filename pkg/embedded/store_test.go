package embedded

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

var t0 = time.UnixMilli(1_000_000)

func newStore(t *testing.T, cfg Config) *Store {
	t.Helper()
	s := New(cfg)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func limitsOf(t *testing.T, limits ...limiter.Limit) *limiter.Limits {
	t.Helper()
	l, err := limiter.NewLimits(limits...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func opOf(entity string, limits *limiter.Limits, take int64) limiter.Op {
	op := limiter.Op{
		Bucket: limiter.BucketKey{Namespace: "default", Entity: entity, Resource: "r"},
		Limits: limits, Generation: 1,
	}
	for i := range limits.Len() {
		op.Spends = append(op.Spends, limiter.Spend{Limit: limits.At(i).Name, Take: take * limiter.Milli})
	}
	return op
}

func mustTake(t *testing.T, s *Store, now time.Time, want bool, ops ...limiter.Op) {
	t.Helper()
	got, err := s.Take(t.Context(), now, ops)
	if err != nil || got != want {
		t.Fatalf("Take: got %t, %v; want %t", got, err, want)
	}
}

func TestBucketsThatAreFullAreNotKept(t *testing.T) {
	s := newStore(t, Config{})
	limits := limitsOf(t, limiter.PerSecond("rps", 2))
	for _, step := range []struct {
		what string
		now  time.Time
		ops  []limiter.Op
		want bool
		held int64
	}{
		{"a peek", t0, []limiter.Op{{Bucket: limiter.BucketKey{Entity: "look"}, Limits: limits, Spends: []limiter.Spend{{Limit: "rps", Look: true}}}}, true, 0},
		{"a denial", t0, []limiter.Op{opOf("a", limits, 3)}, false, 0},
		{"a take", t0, []limiter.Op{opOf("a", limits, 1)}, true, 1},
		{"a denial of two", t0, []limiter.Op{opOf("a", limits, 1), opOf("b", limits, 3)}, false, 1},
		{"a take of two", t0, []limiter.Op{opOf("a", limits, 1), opOf("b", limits, 1)}, true, 2},
	} {
		mustTake(t, s, step.now, step.want, step.ops...)
		if got := s.Buckets(); got != step.held {
			t.Errorf("after %s: %d buckets, want %d", step.what, got, step.held)
		}
	}
	s.sweep(0, shardCount, t0.Add(grace+999*time.Millisecond).UnixMilli())
	if got := s.Buckets(); got != 1 {
		t.Errorf("swept before a is full: %d buckets, want 1", got)
	}
	s.sweep(0, shardCount, t0.Add(grace+time.Second).UnixMilli())
	if got := s.Buckets(); got != 0 {
		t.Errorf("swept when all are full: %d buckets, want 0", got)
	}
}

// A caller whose clock is behind, and whose bucket was swept, must not find a full one: refill
// would count twice.
func TestSweepWaitsForLateCallers(t *testing.T) {
	s := newStore(t, Config{})
	limits := limitsOf(t, limiter.PerSecond("rps", 10))
	mustTake(t, s, t0, true, opOf("a", limits, 10))
	late, full := t0.Add(500*time.Millisecond), t0.Add(time.Second)
	for _, swept := range []time.Time{full, late.Add(grace)} {
		s.sweep(0, shardCount, swept.UnixMilli())
		mustTake(t, s, late, false, opOf("a", limits, 6))
	}
	// Touched lately, though it is full: its time is still needed.
	mustTake(t, s, full, true, opOf("a", limits, 0))
	s.sweep(0, shardCount, full.Add(grace/2).UnixMilli())
	if got := s.Buckets(); got != 1 {
		t.Errorf("%d buckets, want 1", got)
	}
}

func TestSweepSparesDormantLimits(t *testing.T) {
	s := newStore(t, Config{})
	hour, second := limiter.PerHour("rph", 10), limiter.PerSecond("rps", 10)
	mustTake(t, s, t0, true, opOf("a", limitsOf(t, hour, second), 10))
	op := opOf("a", limitsOf(t, second), 1)
	op.Generation = 2 // rph is gone
	mustTake(t, s, t0.Add(time.Minute), true, op)
	s.sweep(0, shardCount, t0.Add(30*time.Minute).UnixMilli())
	op = opOf("a", limitsOf(t, hour, second), 6)
	op.Generation = 3 // rph is back
	mustTake(t, s, t0.Add(30*time.Minute), false, op)
	s.sweep(0, shardCount, t0.Add(2*time.Hour).UnixMilli())
	if got := s.Buckets(); got != 0 {
		t.Errorf("%d buckets, want 0: all would be full", got)
	}
}

func TestSweeperRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{SweepInterval: time.Minute})
		mustTake(t, s, time.Now(), true, opOf("a", limitsOf(t, limiter.PerSecond("rps", 2)), 1))
		time.Sleep(2 * time.Minute) // of the bubble's clock
		synctest.Wait()             // the last part is swept at this very moment
		if got := s.Buckets(); got != 0 {
			t.Errorf("%d buckets two sweeps later, want 0", got)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Names with the same hash must not meet: the map is by hash only.
func TestSameHash(t *testing.T) {
	s := newStore(t, Config{})
	limits := limitsOf(t, limiter.PerSecond("rps", 5))
	sh := &s.shards[0]
	const hash = shardCount * 7
	buckets := make([]*bucket, 3)
	for round := range 2 {
		for i := range buckets {
			op := opOf(strconv.Itoa(i), limits, int64(i+1))
			b, created, err := s.open(sh, hash, t0.UnixMilli(), &op)
			if err != nil || created != (round == 0) {
				t.Fatalf("bucket %d: created %t, %v", i, created, err)
			}
			if round == 1 && b != buckets[i] {
				t.Errorf("bucket %d is another's", i)
			}
			buckets[i] = b
		}
	}
	for left, i := range []int{1, 2, 0} { // middle, first, last
		s.drop(sh, hash, buckets[i])
		n := 0
		for b := sh.buckets[hash]; b != nil; b = b.next {
			n++
			if b == buckets[i] {
				t.Errorf("bucket %d is still there", i)
			}
		}
		if want := 2 - left; n != want || s.Buckets() != int64(want) {
			t.Errorf("after dropping %d: %d in the chain, %d counted, want %d", i, n, s.Buckets(), want)
		}
	}
}

func TestLongNamesAreKeptShort(t *testing.T) {
	long := strings.Repeat("x", limiter.MaxShownName+1)
	s := newStore(t, Config{})
	limits := limitsOf(t, limiter.PerSecond("rps", 1))
	mustTake(t, s, t0, true, opOf(long, limits, 1))
	mustTake(t, s, t0, false, opOf(long, limits, 1))
	// The stored form itself, sent as a name, is another name.
	mustTake(t, s, t0, true, opOf(limiter.ShortName(long), limits, 1))
}

func TestManyBucketsInOneDecision(t *testing.T) {
	s := newStore(t, Config{})
	limits := limitsOf(t, limiter.PerSecond("rps", 1))
	ops := make([]limiter.Op, 200) // more than fit the fixed array
	for i := range ops {
		ops[i] = opOf(strconv.Itoa(i), limits, 1)
	}
	mustTake(t, s, t0, true, ops...)
	mustTake(t, s, t0, false, ops[150])
	mustTake(t, s, t0, false, ops...)
}

func TestCloseWhileSweepingAndTaking(t *testing.T) {
	s := New(Config{SweepInterval: time.Millisecond})
	limits := limitsOf(t, limiter.PerSecond("rps", 1000))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				_, err := s.Take(context.Background(), time.Now(), []limiter.Op{opOf(fmt.Sprint(g, i%64), limits, 1), opOf("shared", limits, 1)})
				if errors.Is(err, limiter.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if got := s.Buckets(); got != 0 {
		t.Errorf("%d buckets after Close", got)
	}
}
