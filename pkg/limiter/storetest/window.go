package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// windowChecks are about never admitting too much.
func windowChecks() []check {
	return []check{
		{name: "window/exactly the balance", run: checkExactly},
		{name: "window/unsteady clocks", run: checkUnsteadyClocks},
		{name: "window/a clock that runs backwards", run: checkBackwards},
		{name: "window/far times", run: checkFarTimes},
	}
}

// checkExactly: of 64 × 20 concurrent takes of one token exactly 500 are admitted
// by a bucket of 500, with time standing still. A store that corrects the caller's clock may move
// it by some ms, in which the bucket refills nothing.
func checkExactly(t T, s limiter.Store) {
	c := newClient(t, s)
	ctx, cancel := within(t)
	defer cancel()
	var admitted atomic.Int64
	var g errgroup.Group
	for range callers {
		op := c.one("user", limiter.PerDay("l", 500), limiter.Spend{Take: tokens(1)})
		g.Go(func() error {
			for range 20 {
				ok, err := s.Take(ctx, at(0), []limiter.Op{op})
				if err != nil {
					return err
				}
				if ok {
					admitted.Add(1)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("a caller failed: %v", err)
	}
	if admitted.Load() != 500 {
		t.Errorf("%d admitted, want 500", admitted.Load())
	}
}

// windowCase is a bucket and its callers with unsteady clocks.
type windowCase struct {
	limit  limiter.Limit
	step   int64 // the clock advances up to step-1 ms a call
	jitter int64 // ms that a caller's clock is off
	most   int64 // millitokens that one call takes
}

// checkUnsteadyClocks: 64 callers have clocks that jitter and run backwards, and are suspended
// between the read of the clock and the take. They are admitted no more than capacity and refill
// allow, in any interval.
func checkUnsteadyClocks(t T, s limiter.Store) {
	for i, w := range []windowCase{
		{limiter.PerSecond("l", 100), 3, 40, tokens(2)},
		{limiter.PerSecond("l", 100), 2, 2000, tokens(20)},
		{limiter.Custom("l", 5, 900, time.Minute), 40, 500, tokens(3)},
		{limiter.Custom("l", 50, 7, 3*time.Minute), 2000, 100_000, 1700},
	} {
		h := w.run(t, s, fmt.Sprint("user", i))
		if err := rateOf(w.limit).check(h.landed(), 0); err != nil {
			t.Errorf("limit %v, by the time of the decisions: %v", w.limit, err)
		}
		// A caller's clock is late by up to 2·jitter and early by up to jitter.
		if err := rateOf(w.limit).check(h.called, 3*w.jitter); err != nil {
			t.Errorf("limit %v, by the time of the calls: %v", w.limit, err)
		}
		if len(h.decided) == 0 || h.denied.Load() == 0 {
			t.Errorf("limit %v: %d admitted and %d denied: the case shows nothing", w.limit, len(h.decided), h.denied.Load())
		}
	}
}

func (w windowCase) run(t T, s limiter.Store, entity string) *history {
	c := newClient(t, s)
	ctx, cancel := within(t)
	defer cancel()
	var h history
	var now clock
	var g errgroup.Group
	for caller := range callers {
		op := c.one(entity, w.limit, limiter.Spend{})
		r := seeded(2, caller)
		g.Go(func() error { return w.call(ctx, s, r, op, &now, &h) })
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("a caller failed: %v", err)
	}
	return &h
}

// call is one caller: it takes, and at times refunds its last take.
func (w windowCase) call(ctx context.Context, s limiter.Store, r *rand.Rand, op limiter.Op, now *clock, h *history) error {
	var got int64
	for range 40 {
		sp := limiter.Spend{Limit: w.limit.Name, Take: 1 + r.Int64N(w.most)}
		if r.IntN(8) == 0 && got > 0 {
			sp.Take, sp.Refund, got = 0, got, 0
		}
		ops := []limiter.Op{spending(op, sp)}
		called := taking{from: now.ms.Load(), began: h.next()}
		asked := now.unsteady(r, w.step, w.jitter)
		admitted, err := s.Take(ctx, at(asked), ops)
		if err != nil {
			return err
		}
		called.to, called.ended = now.ms.Load(), h.next()
		decided := ops[0].Spends[0].Bucket.Refilled - epoch
		if decided < asked {
			return fmt.Errorf("a call at %d ms was decided at %d ms", asked, decided)
		}
		if !admitted {
			h.denied.Add(1)
			continue
		}
		if sp.Take > 0 {
			got = sp.Take
		}
		called.taken, called.refunded = sp.Take, sp.Refund
		decision := called
		decision.from, decision.to = decided, decided
		h.add(decision, called)
	}
	return nil
}

// checkBackwards: a clock that jumps between two times gives the refill between
// them once.
func checkBackwards(t T, s limiter.Store) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerSecond("l", 10), limiter.Spend{Take: tokens(1)})
	c.want(true, 0, spending(op, limiter.Spend{Take: tokens(10)}))
	var admitted int
	for i := range 100 {
		if c.take(int64(i%2)*500, op) {
			admitted++
		}
	}
	if admitted != 5 {
		t.Errorf("%d admitted, want 5: the refill of half a second", admitted)
	}
}

// checkFarTimes: no time makes the store panic or admit more than the capacity at once.
func checkFarTimes(t T, s limiter.Store) {
	c := newClient(t, s)
	const year = 365 * 24 * 3_600_000
	op := c.one("user", limiter.PerSecond("l", 10), limiter.Spend{Take: tokens(10)})
	for _, step := range []struct {
		ms       int64
		admitted bool
	}{
		{-290_000_000 * year, true}, {-2100 * year, true}, {0, true}, {-2100 * year, false}, {100_000 * year, true}, {0, false}, {290_000_000 * year, true},
	} {
		c.want(step.admitted, step.ms, op)
		c.want(false, step.ms, op)
	}
}
