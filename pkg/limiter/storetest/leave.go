package storetest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// leaveChecks are about callers that cancel while the store works for them.
func leaveChecks() []check {
	return []check{
		{name: "leave/takes are returned", run: checkLeaversTakeNothing},
		{name: "leave/charges are applied once", run: checkLeaversAreChargedOnce},
	}
}

// leaving is a context that ends, as if its caller cancels, shortly after the store has begun to
// wait.
type leaving struct {
	context.Context //nolint:containedctx // it is one

	moment int   // how often other goroutines run before
	cause  error // of its end
	begin  sync.Once
	gone   chan struct{}
}

func leavingAfter(ctx context.Context, moment int) *leaving {
	return &leaving{Context: ctx, moment: moment, cause: context.Canceled, gone: make(chan struct{})}
}

// Done implements context.Context.
func (l *leaving) Done() <-chan struct{} {
	l.begin.Do(func() {
		go func() { // ends by itself
			for range l.moment {
				runtime.Gosched()
			}
			close(l.gone)
		}()
	})
	return l.gone
}

// Err implements context.Context.
func (l *leaving) Err() error {
	select {
	case <-l.gone:
		return l.cause
	default:
		return l.Context.Err()
	}
}

// leavers is the number of callers of a check that cancel.
const leavers = 400

// slow returns a limit that refills nothing in a check: the time of a bucket can advance by the
// system clock during a wait for a lease.
func slow(capacity int64) limiter.Limit { return limiter.Custom("l", capacity, 1, 24*time.Hour) }

// leave makes a call that is canceled if the store waits. It requires an answer or an error of the
// contract.
func (c client) leave(moment int, ops ...limiter.Op) (admitted bool, err error) {
	c.Helper()
	admitted, err = c.store.Take(leavingAfter(c.Context(), moment), at(0), ops)
	if err != nil && (admitted || !errors.Is(err, context.Canceled) || !errors.Is(err, limiter.ErrUnavailable) && !errors.Is(err, limiter.ErrUncertain)) {
		c.Fatalf("a canceled call: got %t, %v; want an error of %q or %q that wraps %q", admitted, err, limiter.ErrUnavailable, limiter.ErrUncertain, context.Canceled)
	}
	return admitted, err
}

// comesTo requires that a balance is between two amounts in the end, when tokens on lease have
// returned.
func (c client) comesTo(least, most int64, op limiter.Op) {
	c.Helper()
	ctx, cancel := within(c)
	defer cancel()
	op.Lease.None = true
	got := c.balance(0, op)
	for ; ctx.Err() == nil && (got < least || got > most); got = c.balance(0, op) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	if got < least || got > most {
		c.Errorf("balance of %q after %d calls, some of them canceled: %d millitokens, want %d to %d", op.Bucket.Entity, leavers, got, least, most)
	}
}

// checkLeaversTakeNothing: canceled calls without an answer take nothing from two buckets in the
// end.
func checkLeaversTakeNothing(t T, s limiter.Store) {
	const capacity = 1_000_000
	c := newClient(t, s)
	key := c.one("key", slow(capacity), limiter.Spend{Take: tokens(1)})
	org := c.one("org", slow(capacity), limiter.Spend{Take: tokens(1)})
	c.want(true, 0, key, org)
	taken := tokens(1)
	for i := range leavers {
		ops := []limiter.Op{spending(key, limiter.Spend{Take: tokens(1)}), spending(org, limiter.Spend{Take: tokens(1)})}
		if admitted, _ := c.leave(i%97, ops...); admitted {
			taken += tokens(1)
		}
	}
	c.comesTo(tokens(capacity)-taken, tokens(capacity)-taken, key)
	c.comesTo(tokens(capacity)-taken, tokens(capacity)-taken, org)
}

// checkLeaversAreChargedOnce: a charge whose caller cancels is applied once or not at all, and not
// if the error says so.
func checkLeaversAreChargedOnce(t T, s limiter.Store) {
	const capacity = 1_000_000
	c := newClient(t, s)
	op := c.one("key", slow(capacity), limiter.Spend{Charge: tokens(1)})
	c.want(true, 0, op)
	booked, perhaps := tokens(1), int64(0)
	for i := range leavers {
		switch _, err := c.leave(i%97, spending(op, limiter.Spend{Charge: tokens(1)})); {
		case err == nil:
			booked += tokens(1)
		case errors.Is(err, limiter.ErrUncertain):
			perhaps += tokens(1)
		}
	}
	c.comesTo(tokens(capacity)-booked-perhaps, tokens(capacity)-booked, op)
}
