package embedded_test

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// lookup is the yardstick: a sharded map of the same keys, one locked lookup and
// one reading of the clock for each decision.
type lookup struct {
	seed   maphash.Seed
	shards [4096]struct {
		sync.Mutex
		m map[string]int64
	}
}

func newLookup(keys []string) *lookup {
	l := &lookup{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].m = make(map[string]int64)
	}
	for _, k := range keys {
		l.shards[maphash.String(l.seed, k)%4096].m[k] = 1
	}
	return l
}

func (l *lookup) get(key string) int64 {
	now := time.Now().UnixMilli()
	sh := &l.shards[maphash.String(l.seed, key)%4096]
	sh.Lock()
	defer sh.Unlock()
	return sh.m[key] + now
}

func keysOf(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("key/k-%08d", i)
	}
	return keys
}

func benchLimiter(tb testing.TB) *limiter.Limiter {
	tb.Helper()
	return limiterOf(tb, embedded.New(embedded.Config{}), limiter.PerDay("rpd", 1_000_000_000))
}

// limiterOf returns a limiter of one limit for everything, and closes the store in the end.
func limiterOf(tb testing.TB, store *embedded.Store, limit limiter.Limit) *limiter.Limiter {
	tb.Helper()
	tb.Cleanup(func() { _ = store.Close(context.Background()) })
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		tb.Fatal(err)
	}
	system, err := limiter.NewLimits(limit)
	if err != nil {
		tb.Fatal(err)
	}
	if err := l.SetStatic(context.Background(), limiter.Static{System: system}); err != nil {
		tb.Fatal(err)
	}
	return l
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		keys := keysOf(n)
		b.Run(fmt.Sprintf("lookup/%d", n), func(b *testing.B) {
			l := newLookup(keys)
			r := rand.New(rand.NewPCG(1, 2))
			var sum int64
			for b.Loop() {
				sum += l.get(keys[r.IntN(n)])
			}
			_ = sum
		})
		for kind, limit := range map[string]limiter.Limit{
			"rate":      limiter.PerDay("rpd", 1_000_000_000),
			"quota":     limiter.Quota("rpd", 1_000_000_000, limiter.Calendar{Unit: limiter.CalendarMonth, Zone: "Europe/Berlin"}),
			"in flight": limiter.Concurrent("rpd", 1_000_000_000, time.Hour),
		} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) { decideRandomly(b, keys, limit) })
		}
	}
}

// decideRandomly decides about entities at random, each of which has a bucket already.
func decideRandomly(b *testing.B, keys []string, limit limiter.Limit) {
	b.Helper()
	l := limiterOf(b, embedded.New(embedded.Config{}), limit)
	ctx := context.Background()
	req := &limiter.Request{Takes: []limiter.Take{{Resource: "gpt-4", Consume: []limiter.Consumption{{Limit: "rpd", Amount: 1000}}}}}
	var d limiter.Decision
	for _, k := range keys {
		req.Takes[0].Entity = k
		_ = l.Decide(ctx, time.Now(), req, &d)
	}
	r := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		req.Takes[0].Entity = keys[r.IntN(len(keys))]
		if err := l.Decide(ctx, time.Now(), req, &d); err != nil || !d.Admitted {
			b.Fatal(err, d)
		}
	}
}
