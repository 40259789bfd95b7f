//go:build !race

package embedded_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func TestAllocsOfADecision(t *testing.T) {
	limit := limiter.PerDay("rpd", 1_000_000_000)
	for name, l := range map[string]*limiter.Limiter{
		"in memory": limiterOf(t, embedded.New(embedded.Config{}), limit), "with a file": limiterOf(t, openDurable(t), limit),
	} {
		allocsOfADecision(t, name, l)
	}
}

func allocsOfADecision(t *testing.T, name string, l *limiter.Limiter) {
	t.Helper()
	var d limiter.Decision
	req := &limiter.Request{Takes: []limiter.Take{{
		Entity: "key/k-1", Resource: "gpt-4", Parents: []string{"project/p", "org/o"},
		Consume: []limiter.Consumption{{Limit: "rpd", Amount: limiter.Milli}},
	}}}
	for _, levels := range []int{1, 3} {
		req.Takes[0].Parents = []string{"project/p", "org/o"}[:levels-1]
		decide := func() {
			if err := l.Decide(context.Background(), time.Now(), req, &d); err != nil || !d.Admitted {
				t.Fatal(err, d.Admitted)
			}
		}
		decide()
		if got := testing.AllocsPerRun(1000, decide); got != 0 {
			t.Errorf("%s, %d levels: %v allocations a decision, want 0", name, levels, got)
		}
	}
}

const million = 1_000_000

// A million buckets fit in 256 MiB, all that a store needs for them included.
func TestAllocatedMemoryOfAMillionBuckets(t *testing.T) {
	const most = 256 << 20
	got := bytesOfBuckets(t, embedded.New(embedded.Config{}), million, 1)
	t.Logf("%d MiB for %d buckets", got>>20, million)
	if got > most {
		t.Errorf("%d buckets take %d bytes, want at most %d", million, got, most)
	}
}

// Buckets that a file has take a block more, so that a million of them fit in 320 MiB.
func TestAllocatedMemoryOfDurableBuckets(t *testing.T) {
	const buckets, most = 50_000, 320 << 20 / 20
	got := bytesOfBuckets(t, openDurable(t), buckets, 1024)
	t.Logf("%d bytes a bucket", got/buckets)
	if got > most {
		t.Errorf("%d buckets take %d bytes, want at most %d", buckets, got, most)
	}
}

// A bucket with the longest stored names takes BucketBytes at most, with and without a file.
func TestAllocatedMemoryOfLongNames(t *testing.T) {
	long := strings.Repeat("n", 300)
	names := func(i int) limiter.BucketKey {
		return limiter.BucketKey{Namespace: "default", Entity: fmt.Sprint(long, i), Resource: fmt.Sprint(long, -i)}
	}
	limits, err := limiter.NewLimits(limiter.PerDay("rpd", 1000), limiter.PerHour("rph", 1000))
	if err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]*embedded.Store{"in memory": embedded.New(embedded.Config{}), "with a file": openDurable(t)} {
		const n = 20_000 // more than half way from one size of the maps to the next
		before := liveBytes()
		fillWith(t, store, n, 1024, limits, names)
		got := (liveBytes() - before) / n
		t.Logf("%s: %d bytes a bucket", name, got)
		if got > embedded.BucketBytes {
			t.Errorf("%s: a bucket takes %d bytes, want at most %d", name, got, embedded.BucketBytes)
		}
		_ = store.Close(context.Background())
	}
}

// The marks of five million settlements fit in 1 GiB, as DefaultMaxMarks promises.
func TestAllocatedMemoryOfMarks(t *testing.T) {
	const marks, most = 500_000, 1 << 30 / 10
	store := embedded.New(embedded.Config{})
	defer func() { _ = store.Close(context.Background()) }()
	now := time.Now()
	before := liveBytes()
	for i := range marks {
		m := limiter.Mark{Namespace: "default", ID: fmt.Sprintf("%022d", i), Owner: fmt.Sprintf("%022d", i), Expires: now.Add(time.Hour)}
		if won, err := store.Settle(context.Background(), now, m); err != nil || !won {
			t.Fatal(won, err)
		}
	}
	got := liveBytes() - before
	t.Logf("%d bytes a mark", got/marks)
	if got > most || store.Marks() != marks {
		t.Errorf("%d marks take %d bytes, want at most %d", store.Marks(), got, most)
	}
}

// bytesOfBuckets returns the memory of n buckets of a store after takes by so many concurrent
// callers, and closes the store. The names of the keys are not shared with the caller.
func bytesOfBuckets(tb testing.TB, store *embedded.Store, n, callers int) uint64 {
	tb.Helper()
	limits, err := limiter.NewLimits(limiter.PerDay("rpd", 1000))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = store.Close(context.Background()) }()
	before := liveBytes()
	fillWith(tb, store, n, callers, limits, func(i int) limiter.BucketKey {
		return limiter.BucketKey{Namespace: "default", Entity: fmt.Sprintf("key/k-%016d", i), Resource: "gpt-4"}
	})
	after := liveBytes()
	if got := store.Buckets(); got != int64(n) {
		tb.Fatalf("%d buckets, want %d", got, n)
	}
	return after - before
}

// fillWith takes from n buckets of a store, by so many callers at once.
func fillWith(tb testing.TB, store *embedded.Store, n, callers int, limits *limiter.Limits, key func(int) limiter.BucketKey) {
	tb.Helper()
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			ops := []limiter.Op{{Limits: limits}}
			for i := range limits.Len() {
				ops[0].Spends = append(ops[0].Spends, limiter.Spend{Limit: limits.At(i).Name, Take: limiter.Milli})
			}
			for i := c; i < n; i += callers {
				ops[0].Bucket = key(i)
				if ok, err := store.Take(context.Background(), time.Now(), ops); err != nil || !ok {
					tb.Error(ok, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func openDurable(tb testing.TB) *embedded.Store {
	tb.Helper()
	store, err := embedded.Open(tb.TempDir(), embedded.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

func liveBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
