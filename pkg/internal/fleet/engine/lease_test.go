package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

func leased(cfg *engine.Config) { cfg.Attempt, cfg.Budget, cfg.Leases = 0, 0, true }

// mustTake decides ops now and requires the answer.
func mustTake(tb testing.TB, e *engine.Engine, want bool, ops ...limiter.Op) {
	tb.Helper()
	if got, err := e.Take(tb.Context(), time.Now(), ops); err != nil || got != want {
		tb.Fatalf("got %t, %v; want %t", got, err, want)
	}
}

func closing(tb testing.TB, engines ...*engine.Engine) {
	tb.Helper()
	for _, e := range engines {
		if err := e.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	}
}

// warm asks for ops until their buckets are leased: once each millisecond, for some time.
func warm(tb testing.TB, e *engine.Engine, lasts time.Duration, ops ...limiter.Op) {
	tb.Helper()
	for began := time.Now(); time.Since(began) < lasts; time.Sleep(time.Millisecond) {
		mustTake(tb, e, true, ops...)
	}
}

// chain returns ops on a child and its parent, under limits of their own.
func chain(t *testing.T, child, parent int64) []limiter.Op {
	t.Helper()
	return []limiter.Op{
		op(t, "child", limiter.PerSecond("l", child), limiter.Spend{Take: tokens(1)}),
		op(t, "parent", limiter.PerSecond("l", parent), limiter.Spend{Take: tokens(1)}),
	}
}

// A call over buckets that are all leased costs no write, whether it is admitted or not.
func TestACascadeIsDecidedByLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, newTable(t), leased)
		defer closing(t, e)
		ops := chain(t, 10_000, 20_000)
		warm(t, e, 500*time.Millisecond, ops...)
		before := e.Stats()
		warm(t, e, 100*time.Millisecond, ops...)
		after := e.Stats()
		if after.Leases != 2 || after.Writes-before.Writes > 10 || after.Served-before.Served != 200 {
			t.Errorf("200 ops: %d leases, %d writes, %d served from leases; want 2, at most 10, and 200", after.Leases, after.Writes-before.Writes, after.Served-before.Served)
		}
	})
}

// Close gives everything back, so that another replica finds it at once.
func TestCloseReturnsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		e := newEngine(t, db, leased)
		o := op(t, "e", limiter.PerSecond("l", 1000), limiter.Spend{Take: tokens(1)})
		warm(t, e, time.Second, o)
		if got := e.Stats().Leases; got != 1 {
			t.Fatalf("%d leases before Close, want 1", got)
		}
		began := time.Now()
		closing(t, e)
		if got := e.Stats(); got.Leases != 0 || time.Since(began) > time.Second {
			t.Errorf("%d leases after Close, which took %v", got.Leases, time.Since(began))
		}
		time.Sleep(2 * time.Second) // full again
		other := newEngine(t, db, nil)
		defer closing(t, other)
		all := op(t, "e", limiter.PerSecond("l", 1000), limiter.Spend{Take: tokens(1000)})
		mustTake(t, other, true, all)
	})
}

// The lease of a process that is gone is freed by the others.
func TestALeaseOfADeadReplicaIsReaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		dead := newEngine(t, db, leased)
		o := op(t, "e", limiter.PerSecond("l", 1000), limiter.Spend{Take: tokens(1)})
		warm(t, dead, time.Second, o)
		cut := newEngine(t, db, leased)
		defer closing(t, cut)
		db.SetPlan(func(c dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.ServerError} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = dead.Close(ctx) // its lease stays in the item
		db.SetPlan(nil)
		time.Sleep(10 * time.Second)
		for range 20 {
			mustTake(t, cut, true, o)
			time.Sleep(500 * time.Millisecond)
		}
		if got := cut.Stats().Reaped; got != 1 {
			t.Errorf("%d leases were reaped, want 1", got)
		}
		all := op(t, "e", limiter.PerSecond("l", 1000), limiter.Spend{Take: tokens(999)})
		time.Sleep(2 * time.Second)
		mustTake(t, cut, true, all)
	})
}

// A request that is larger than the lease gets the tokens of the lease and the centre
// together.
func TestALargeRequestGetsAllThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, newTable(t), leased)
		defer closing(t, e)
		l := limiter.PerSecond("l", 4000)
		warm(t, e, time.Second, op(t, "e", l, limiter.Spend{Take: tokens(1)}))
		large := op(t, "e", l, limiter.Spend{Take: tokens(3000)})
		mustTake(t, e, true, large)
		mustTake(t, e, false, large)
		if got := e.Stats(); got.Leases != 1 {
			t.Errorf("%d leases, want 1", got.Leases)
		}
	})
}

// A call that takes of one limit and charges another is decided by the item: a lease that has
// tokens of the first gives them, and does not drop the charge.
func TestAChargeBesideATakeIsBooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, newTable(t), leased)
		defer closing(t, e)
		o := op(t, "e", limiter.PerSecond("a", 1000), limiter.Spend{Take: tokens(1)})
		limits, err := limiter.NewLimits(limiter.PerSecond("a", 1000), limiter.PerSecond("b", 1000))
		if err != nil {
			t.Fatal(err)
		}
		o.Limits = limits
		warm(t, e, 500*time.Millisecond, o)
		if got := e.Stats(); got.Leases != 1 {
			t.Fatalf("%d leases, want 1", got.Leases)
		}
		look := o
		look.Spends = []limiter.Spend{{Limit: "a"}, {Limit: "b"}}
		mustTake(t, e, true, look)
		both := o
		both.Spends = []limiter.Spend{{Limit: "a", Take: look.Spends[0].Bucket.Tokens}, {Limit: "b", Charge: tokens(300)}}
		mustTake(t, e, true, both)
		mustTake(t, e, true, look)
		a, b := look.Spends[0].Bucket.Tokens/limiter.Milli, look.Spends[1].Bucket.Tokens/limiter.Milli
		if a != 0 || b < 690 || b > 700 {
			t.Errorf("%d tokens of a and %d of b are left, want 0, and 700 or a few less", a, b)
		}
	})
}

// The answer to a denied large request has the tokens of the lease and the centre together,
// and a smaller one gets them.
func TestALargeDenialHidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, newTable(t), leased)
		defer closing(t, e)
		l := limiter.Custom("l", 1_000_000, 20, time.Second)
		take := func(n int64) limiter.Op { return op(t, "e", l, limiter.Spend{Take: tokens(n)}) }
		warm(t, e, time.Second, take(1))
		look := take(0)
		mustTake(t, e, true, look)
		mustTake(t, e, true, take(look.Spends[0].Bucket.Tokens/limiter.Milli-507))
		for _, step := range []struct {
			take, left int64
			admitted   bool
		}{{600, 507, false}, {2, 505, true}, {506, 505, false}, {490, 15, true}, {16, 15, false}, {15, 0, true}} {
			o := take(step.take)
			mustTake(t, e, step.admitted, o)
			if got := o.Spends[0].Bucket.Tokens / limiter.Milli; got != step.left {
				t.Errorf("after a take of %d: %d are left, want %d", step.take, got, step.left)
			}
		}
	})
}
