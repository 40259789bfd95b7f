package storetest

import (
	"context"
	"errors"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// lateChecks are about decisions of calls whose deadline passes.
func lateChecks() []check {
	return []check{
		{name: "late/never before the deadline", run: checkNothingIsLate},
		{name: "late/is taken", run: checkLateIsTaken},
	}
}

// checkNothingIsLate: a call with enough time is never decided late, whether it is admitted or
// denied.
func checkNothingIsLate(t T, s limiter.Store) {
	c := newClient(t, s)
	for range 10 {
		ops := []limiter.Op{
			c.one("key", limiter.PerDay("l", 5), limiter.Spend{Take: tokens(1)}),
			c.one("org", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(1), Charge: tokens(1)}),
		}
		c.take(0, ops...)
		if slices.ContainsFunc(ops, func(op limiter.Op) bool { return op.Late }) {
			t.Fatalf("a decision without a deadline is late: %s", describe(ops))
		}
	}
}

// deadlines is the number of calls of a check whose deadline passes.
const deadlines = 200

// checkLateIsTaken: after a deadline has passed, the tokens of admitted calls are taken in the end,
// and those of denied ones are not. Charges are applied once either way. A store without late
// decisions fails such calls, and takes nothing.
func checkLateIsTaken(t T, s limiter.Store) {
	const capacity = 1_000_000
	c := newClient(t, s)
	key := c.one("key", slow(capacity), limiter.Spend{Take: tokens(1)})
	org := c.one("org", slow(150), limiter.Spend{Take: tokens(1)}) // denies some
	job := c.one("job", slow(capacity), limiter.Spend{Charge: tokens(1)})
	c.want(true, 0, key, org, job)
	taken, booked, perhaps := tokens(1), tokens(1), int64(0)
	for i := range deadlines {
		ops := []limiter.Op{spending(key, key.Spends[0]), spending(org, org.Spends[0]), spending(job, job.Spends[0])}
		admitted, err := s.Take(passing(t.Context(), i%97), at(0), ops)
		switch {
		case err == nil:
			booked += tokens(1)
		case errors.Is(err, limiter.ErrUncertain):
			perhaps += tokens(1)
		case !errors.Is(err, limiter.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded):
			t.Fatalf("a call whose deadline passed: got %v, want a decision or %q that wraps %q", err, limiter.ErrUnavailable, context.DeadlineExceeded)
		}
		if admitted {
			taken += tokens(1)
		}
	}
	c.comesTo(tokens(capacity)-taken, tokens(capacity)-taken, key)
	c.comesTo(tokens(150)-taken, tokens(150)-taken, org)
	c.comesTo(tokens(capacity)-booked-perhaps, tokens(capacity)-booked, job)
}

// passing returns a context whose deadline passes shortly after the store has begun to wait; at
// moment 0 it has passed already.
func passing(ctx context.Context, moment int) *leaving {
	l := leavingAfter(ctx, moment)
	l.cause = context.DeadlineExceeded
	if moment == 0 {
		l.begin.Do(func() { close(l.gone) })
	}
	return l
}
