//go:build !race

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// leasedEngine returns an engine with the leases of the buckets of a call, which admits it.
func leasedEngine(tb testing.TB, ops []limiter.Op) *engine.Engine {
	tb.Helper()
	e := newEngine(tb, newTable(tb), func(cfg *engine.Config) {
		leased(cfg)
		cfg.Namespace = func(context.Context, string) (string, error) { return "n", nil }
	})
	tb.Cleanup(func() { closing(tb, e) })
	for began := time.Now(); e.Stats().Leases != int64(len(ops)); {
		if time.Since(began) > time.Minute {
			tb.Fatalf("%d leases after a minute, want %d", e.Stats().Leases, len(ops))
		}
		warm(tb, e, 100*time.Millisecond, ops...)
	}
	return e
}

// leasedOps returns calls of one, two and three ops on buckets with enough for all.
func leasedOps(tb testing.TB) map[string][]limiter.Op {
	tb.Helper()
	entities := [...]string{"key", "project", "org/with a long name, in parts that are escaped"}
	ops := make([]limiter.Op, len(entities))
	for i, entity := range entities {
		ops[i] = op(tb, entity, limiter.PerSecond("l", 50_000_000), limiter.Spend{Take: tokens(1)})
	}
	return map[string][]limiter.Op{"one bucket": ops[:1], "two buckets": ops[:2], "three buckets": ops}
}

// A decision by leases allocates nothing, be it admitted or denied.
func TestAllocsOfALeasedDecision(t *testing.T) {
	for name, ops := range leasedOps(t) {
		t.Run(name, func(t *testing.T) {
			e := leasedEngine(t, ops)
			allocsOfTakes(t, e, ops, true)
		})
	}
	t.Run("denied", func(t *testing.T) {
		ops := leasedOps(t)["one bucket"]
		e := leasedEngine(t, ops)
		ops[0].Spends[0].Take = ops[0].Limits.Params(0).Capacity + 1 // more than there ever is
		allocsOfTakes(t, e, ops, false)
	})
}

func allocsOfTakes(t *testing.T, e *engine.Engine, ops []limiter.Op, admitted bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	const calls = 1000
	served := e.Stats().Served
	got := testing.AllocsPerRun(calls, func() {
		if ok, err := e.Take(ctx, time.Now(), ops); err != nil || ok != admitted {
			t.Fatalf("got %t, %v; want %t", ok, err, admitted)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations a decision, want 0", got)
	}
	if n := e.Stats().Served - served; n < calls*int64(len(ops))*9/10 { // a busy machine may lose a lease
		t.Errorf("leases decided %d parts of %d calls, want nearly all", n, calls)
	}
}

func BenchmarkLeasedDecision(b *testing.B) {
	for name, ops := range leasedOps(b) {
		b.Run(name, func(b *testing.B) {
			e := leasedEngine(b, ops)
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
			defer cancel()
			b.ReportAllocs()
			for now := time.Now(); b.Loop(); now = now.Add(time.Microsecond) {
				if _, err := e.Take(ctx, now, ops); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
