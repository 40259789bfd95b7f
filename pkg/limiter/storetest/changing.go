package storetest

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// version is a set of limits and the generation it came with.
type version struct {
	limits     *limiter.Limits
	generation uint64
}

// checkChangesWhileTaking: 64 callers take while the limit is lowered, raised,
// removed and put back, some of them with an older version in hand. No interval
// has more than the greatest limit of it allows; the intervals after the last
// change have no more than the last limit allows.
func checkChangesWhileTaking(t T, s limiter.Store) {
	c := newClient(t, s)
	small, great := limiter.PerSecond("l", 100), limiter.PerSecond("l", 300)
	other := limiter.PerDay("other", 1)
	sets := []*limiter.Limits{c.limits(small), c.limits(great), c.limits(other), c.limits(small, other), c.limits(limiter.Unlimited("l"))}
	run := changing{store: s, op: on("user", sets[1], limiter.Spend{Limit: "l"})}
	run.versions.Store(&[]version{{sets[1], 1}})

	limited, cancel := within(t)
	defer cancel()
	g, ctx := errgroup.WithContext(limited)
	for caller := range callers {
		g.Go(func() error { return run.call(ctx, rand.New(rand.NewPCG(5, uint64(caller)))) }) // #nosec G404 -- repeatable
	}
	g.Go(func() error {
		for generation := uint64(2); run.calls.Load() < callers*40 && ctx.Err() == nil; generation++ {
			run.put(version{sets[generation%uint64(len(sets))], generation})
			for before := run.calls.Load(); run.calls.Load() < before+callers && ctx.Err() == nil; {
				runtime.Gosched()
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		t.Fatalf("a caller failed: %v", err)
	}
	if err := rateOf(small).over(rateOf(great)).check(run.history.decided, 0); err != nil {
		t.Errorf("while limits change: %v", err)
	}
	run.checkSettled(t, version{sets[0], 1 << 40}, rateOf(small))
}

// changing is a bucket whose limits change while callers take from it.
type changing struct {
	store    limiter.Store
	op       limiter.Op
	versions atomic.Pointer[[]version]
	calls    atomic.Int64
	clock    clock
	history  history
}

// put puts a version in force.
func (ch *changing) put(v version) {
	all := append([]version(nil), *ch.versions.Load()...)
	all = append(all, v)
	ch.versions.Store(&all)
}

// call is one caller, who has the version in force, or was suspended with an older one.
func (ch *changing) call(ctx context.Context, r *rand.Rand) error {
	for range 60 {
		versions := *ch.versions.Load()
		v := versions[len(versions)-1]
		if r.IntN(3) == 0 {
			v = versions[max(0, len(versions)-1-r.IntN(4))]
		}
		sp := limiter.Spend{Limit: "l", Take: 1 + r.Int64N(tokens(6))}
		ops := []limiter.Op{under(spending(ch.op, sp), v.generation, v.limits)}
		if v.limits.Find("l") < 0 {
			ops[0].Spends[0].Limit = "other"
			ops[0].Spends[0].Take = 0
		}
		asked := ch.clock.unsteady(r, 2, 50)
		admitted, err := ch.store.Take(ctx, at(asked), ops)
		ch.calls.Add(1)
		if err != nil {
			return err
		}
		if got := ops[0].Spends[0]; admitted && got.Held && got.Limit == "l" {
			ms := got.Bucket.Refilled - epoch
			ch.history.add(taking{ms, ms, got.Take, 0}, taking{})
		}
	}
	return nil
}

// checkSettled puts the last version in force with one call, and has callers with
// it and with older ones take again.
func (ch *changing) checkSettled(t T, last version, r rate) {
	c := newClient(t, ch.store)
	c.take(ch.clock.ms.Load(), under(spending(ch.op, limiter.Spend{}), last.generation, last.limits))
	ch.put(last)
	ch.history = history{}
	ctx, cancel := within(t)
	defer cancel()
	var g errgroup.Group
	for caller := range callers {
		g.Go(func() error { return ch.call(ctx, rand.New(rand.NewPCG(6, uint64(caller)))) }) // #nosec G404 -- repeatable
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("a caller failed: %v", err)
	}
	if err := r.check(ch.history.decided, 0); err != nil {
		t.Errorf("after the last change: %v", err)
	}
	if len(ch.history.decided) == 0 {
		t.Errorf("nothing was admitted after the last change: the case shows nothing")
	}
}
