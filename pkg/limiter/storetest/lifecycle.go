package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// lifecycleChecks are about contexts that are done and stores that are closed.
func lifecycleChecks() []check {
	return []check{
		{name: "context/canceled", run: checkContextDone(context.Canceled, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		})},
		{name: "context/deadline exceeded", run: checkContextDone(context.DeadlineExceeded, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, time.Unix(0, 0))
		})},
		{name: "close/every method", run: checkUseAfterClose},
		{name: "close/while callers call", run: checkCloseWhileCalling},
	}
}

// methodCall is one call of a method that can succeed on an empty store.
type methodCall struct {
	method Method
	call   func(ctx context.Context) error
}

// everyMethod returns a call of each method that can fail.
func everyMethod(c client, op limiter.Op) []methodCall {
	record := limiter.Record{Limits: op.Limits}
	ref := limiter.EntityLimitsRef("entity", "r")
	return []methodCall{
		{Take, func(ctx context.Context) error {
			_, err := c.store.Take(ctx, at(0), []limiter.Op{op})
			return err
		}},
		{Take, func(ctx context.Context) error {
			other := spending(op, op.Spends...)
			other.Bucket.Entity += "'"
			_, err := c.store.Take(ctx, at(0), []limiter.Op{op, other})
			return err
		}},
		{Read, func(ctx context.Context) error {
			_, err := c.store.Read(ctx, "ns", []limiter.Ref{ref}, make([]limiter.Record, 1))
			return err
		}},
		{PutEntity, func(ctx context.Context) error {
			_, err := c.store.PutEntity(ctx, at(0), "ns", limiter.Entity{ID: "entity"})
			return err
		}},
		{PutLimits, func(ctx context.Context) error { return c.store.PutLimits(ctx, "ns", ref, record) }},
		{RaiseGeneration, c.store.RaiseGeneration},
		{DeleteEntity, func(ctx context.Context) error { return c.store.DeleteEntity(ctx, "ns", "entity") }},
		{Settle, func(ctx context.Context) error {
			_, err := c.store.Settle(ctx, at(0), markOf("reservation", "owner"))
			return err
		}},
		{Secret, func(ctx context.Context) error {
			_, err := c.store.Secret(ctx, "secret", secretOf("candidate"))
			return err
		}},
	}
}

// checkContextDone: a call whose context is done applies nothing, and returns the context's error.
func checkContextDone(cause error, end func(context.Context) (context.Context, context.CancelFunc)) func(T, limiter.Store) {
	return func(t T, s limiter.Store) {
		c := newClient(t, s)
		op := c.one("user", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1), Charge: tokens(1)})
		kept := limiter.EntityLimitsRef("kept", "r")
		c.putEntity("ns", limiter.Entity{ID: "kept"})
		c.putLimits("ns", kept, limiter.PerDay("l", 1))
		_, before := c.readAt("ns")
		calls := append(everyMethod(c, op), methodCall{DeleteEntity, func(ctx context.Context) error {
			return s.DeleteEntity(ctx, "ns", "kept")
		}})
		if errors.Is(cause, context.DeadlineExceeded) && !s.Capabilities().Local { // it may decide late
			calls = slices.DeleteFunc(calls, func(m methodCall) bool { return m.method == Take })
		}
		c.callAll(cause, end, calls)
		c.wantBalance(tokens(10), 0, op)
		records, after := c.readAt("ns", limiter.EntityRef("kept"), kept, limiter.EntityRef("entity"), limiter.EntityLimitsRef("entity", "r"))
		if records[0].Empty() || records[1].Empty() || !records[2].Empty() || !records[3].Empty() || after != before {
			t.Errorf("the catalog changed: generation %d before, %d after, %+v", before, after, records)
		}
	}
}

// callAll makes calls with a context that has ended, and requires its error.
func (c client) callAll(cause error, end func(context.Context) (context.Context, context.CancelFunc), calls []methodCall) {
	c.Helper()
	done, cancel := end(c.Context())
	defer cancel()
	for _, m := range calls {
		if err := m.call(done); !errors.Is(err, cause) || !errors.Is(err, limiter.ErrUnavailable) {
			c.Errorf("%v: error = %v, want %q and %q", m.method, err, cause, limiter.ErrUnavailable)
		}
	}
}

// checkUseAfterClose: every method of a closed store returns ErrClosed, and a second Close is no
// error.
func checkUseAfterClose(t T, s limiter.Store) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)})
	for _, m := range everyMethod(c, op) {
		if err := m.call(t.Context()); err != nil {
			t.Errorf("%v before Close: %v", m.method, err)
		}
	}
	for i := range 3 {
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("Close number %d: %v", i+1, err)
		}
		for _, m := range everyMethod(c, op) {
			if err := m.call(t.Context()); !errors.Is(err, limiter.ErrClosed) {
				t.Errorf("%v after Close number %d: error = %v, want %q", m.method, i+1, err, limiter.ErrClosed)
			}
		}
	}
}

// checkCloseWhileCalling closes the store twice, at once, while 16 callers use it:
// each call succeeds or returns ErrClosed, until all return ErrClosed. Their changes of one namespace
// come one after the other, so that more callers would only wait.
func checkCloseWhileCalling(t T, s limiter.Store) {
	const callers = 16
	c := newClient(t, s)
	ctx, cancel := within(t)
	defer cancel()
	var calls, closed atomic.Int64
	var g errgroup.Group
	for caller := range callers {
		op := c.one(fmt.Sprint("user", caller%4), limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(1)})
		methods := everyMethod(c, op)
		g.Go(func() error {
			refused := 0
			for i := 0; refused < 2*len(methods); i++ {
				m := methods[i%len(methods)]
				err := m.call(ctx)
				calls.Add(1)
				switch {
				case errors.Is(err, limiter.ErrClosed):
					refused++
					closed.Add(1)
				case err != nil && !errors.Is(err, limiter.ErrConflict): // two callers created one entity
					return fmt.Errorf("%v while closing: %w", m.method, err)
				}
			}
			return nil
		})
	}
	for range 2 {
		g.Go(func() error {
			for calls.Load() < 10*callers && ctx.Err() == nil {
				_, err := s.Read(ctx, "ns", nil, nil)
				if err != nil && !errors.Is(err, limiter.ErrClosed) {
					return err
				}
			}
			return s.Close(ctx)
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("%v", err)
	}
	if closed.Load() == 0 {
		t.Errorf("no call met a closed store: the case shows nothing")
	}
}

// isContractError reports whether err wraps one of the errors that a store may return.
func isContractError(err error) bool {
	for _, want := range []error{
		limiter.ErrInvalid, limiter.ErrUnavailable, limiter.ErrUncertain, limiter.ErrClosed, limiter.ErrConflict,
	} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}
