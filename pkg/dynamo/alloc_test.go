//go:build !race

package dynamo_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// leasedLimiter returns a limiter whose store has a lease of the bucket of a request.
func leasedLimiter(tb testing.TB) (l *limiter.Limiter, s *dynamo.Store, req *limiter.Request) {
	tb.Helper()
	s, err := dynamo.New(newTable(tb), dynamo.Config{Table: "buckets", Leases: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closing(tb, s) })
	if l, err = limiter.New(limiter.Config{Store: s}); err != nil {
		tb.Fatal(err)
	}
	limits, err := limiter.NewLimits(limiter.PerSecond("rps", 50_000_000))
	if err != nil {
		tb.Fatal(err)
	}
	req = &limiter.Request{Takes: []limiter.Take{{
		Entity: "user/ada", Resource: "search", Limits: limits, Consume: []limiter.Consumption{{Limit: "rps", Amount: limiter.Milli}},
	}}}
	var d limiter.Decision
	for began := time.Now(); s.Stats().Served == 0; {
		if time.Since(began) > time.Minute {
			tb.Fatal("no lease after a minute")
		}
		if err := l.Decide(tb.Context(), time.Now(), req, &d); err != nil {
			tb.Fatal(err)
		}
	}
	return l, s, req
}

// A limiter's decision by a lease allocates the context of its deadline, and nothing else.
func TestAllocsOfALeasedDecision(t *testing.T) {
	l, s, req := leasedLimiter(t)
	const calls = 1000
	var d limiter.Decision
	served := s.Stats().Served
	got := testing.AllocsPerRun(calls, func() {
		if err := l.Decide(t.Context(), time.Now(), req, &d); err != nil || !d.Admitted {
			t.Fatalf("admitted: %t, %v", d.Admitted, err)
		}
	})
	if got > 1 {
		t.Errorf("%v allocations a decision, want 1", got)
	}
	if n := s.Stats().Served - served; n < calls*9/10 { // a busy machine may lose a lease
		t.Errorf("leases decided %d of %d calls, want nearly all", n, calls)
	}
}

func BenchmarkLeasedDecision(b *testing.B) {
	l, _, req := leasedLimiter(b)
	var d limiter.Decision
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Decide(b.Context(), time.Now(), req, &d); err != nil {
			b.Fatal(err)
		}
	}
}
