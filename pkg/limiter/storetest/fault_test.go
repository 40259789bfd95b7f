package storetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

var noon = time.Date(2100, 1, 1, 12, 0, 0, 0, time.UTC)

// take returns an op that takes one token of 10 a day.
func take(t *testing.T) []limiter.Op {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.PerDay("l", 10))
	if err != nil {
		t.Fatal(err)
	}
	return []limiter.Op{{
		Bucket: limiter.BucketKey{Entity: "user"}, Limits: limits,
		Spends: []limiter.Spend{{Limit: "l", Take: limiter.Milli}},
	}}
}

func TestFaultyTake(t *testing.T) {
	for _, tc := range []struct {
		fault storetest.Fault
		want  error
		left  int64 // tokens after one faulty take and one sound one
	}{
		{storetest.None, nil, 8},
		{storetest.FailBefore, limiter.ErrUnavailable, 9},
		{storetest.FailAfter, limiter.ErrUncertain, 8},
	} {
		f := storetest.NewFaulty(storetest.NewReference(), storetest.Script(storetest.Take, tc.fault))
		ops := take(t)
		admitted, err := f.Take(t.Context(), noon, ops)
		if !errors.Is(err, tc.want) || admitted != (tc.want == nil) {
			t.Errorf("%v: admitted = %t, error %v; want %v", tc.fault, admitted, err, tc.want)
		}
		if tc.want != nil && ops[0].Spends[0].Bucket.Tokens >= 0 {
			t.Errorf("%v: the results of a failed call look valid", tc.fault)
		}
		if _, err := f.Take(t.Context(), noon, ops); err != nil {
			t.Errorf("%v: after the script: %v", tc.fault, err)
		}
		if got := ops[0].Spends[0].Bucket.Tokens; got != tc.left*limiter.Milli {
			t.Errorf("%v: %d millitokens left, want %d tokens", tc.fault, got, tc.left)
		}
		if tc.fault != storetest.None && f.Count(tc.fault) != 1 {
			t.Errorf("%v: met %d times, want 1", tc.fault, f.Count(tc.fault))
		}
	}
}

func TestFaultyBlocksUntilTheContextIsDone(t *testing.T) {
	f := storetest.NewFaulty(storetest.NewReference(), storetest.Always(storetest.Block, storetest.Take))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := f.Take(ctx, noon, take(t))
		done <- err
	}()
	for f.Count(storetest.Block) == 0 {
		select {
		case err := <-done:
			t.Fatalf("returned before its context was done: %v", err)
		default:
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || !errors.Is(err, limiter.ErrUnavailable) {
		t.Errorf("error = %v, want the context's and unavailable", err)
	}
}

func TestFaultyCatalog(t *testing.T) {
	f := storetest.NewFaulty(storetest.NewReference(), storetest.Always(storetest.FailAfter))
	limits, err := limiter.NewLimits(limiter.PerDay("l", 10))
	if err != nil {
		t.Fatal(err)
	}
	_, errEntity := f.PutEntity(t.Context(), noon, "ns", limiter.Entity{ID: "user"})
	errLimits := f.PutLimits(t.Context(), "ns", limiter.SystemLimitsRef(), limiter.Record{Limits: limits})
	errRaise := f.RaiseGeneration(t.Context())
	errDelete := f.DeleteEntity(t.Context(), "ns", "user")
	records := make([]limiter.Record, 2)
	_, errRead := f.Read(t.Context(), "ns", []limiter.Ref{limiter.EntityRef("user"), limiter.SystemLimitsRef()}, records)
	for i, err := range []error{errEntity, errLimits, errRaise, errDelete, errRead} {
		if !errors.Is(err, limiter.ErrUncertain) {
			t.Errorf("call %d: error = %v, want uncertain", i, err)
		}
	}
	if !records[1].Empty() {
		t.Errorf("a failed Read returned records")
	}
	f.Use(nil)
	generation, err := f.Read(t.Context(), "ns", []limiter.Ref{limiter.EntityRef("user"), limiter.SystemLimitsRef()}, records)
	if err != nil || generation != 4 || records[0].Entity != nil || records[1].Limits.Len() != 1 {
		t.Errorf("after four applied changes: generation %d, records %+v, error %v", generation, records, err)
	}
}

func TestSeededPlanRepeats(t *testing.T) {
	draw := func(seed uint64) []storetest.Fault {
		plan := storetest.Seeded(seed, 200, storetest.FailBefore, storetest.FailAfter)
		drawn := make([]storetest.Fault, 100)
		for n := range drawn {
			drawn[n] = plan(storetest.Take, n)
		}
		return drawn
	}
	if !slices.Equal(draw(1), draw(1)) || slices.Equal(draw(1), draw(2)) {
		t.Errorf("the same seed must give the same plan, another one another")
	}
	for _, f := range []storetest.Fault{storetest.None, storetest.FailBefore, storetest.FailAfter} {
		if !slices.Contains(draw(1), f) {
			t.Errorf("%v never happens in 100 calls", f)
		}
	}
}

func TestCounting(t *testing.T) {
	c := storetest.NewCounting(storetest.NewReference())
	for range 3 {
		if _, err := c.Take(t.Context(), noon, take(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.RaiseGeneration(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Count(storetest.Take) != 3 || c.Count(storetest.Read) != 0 || c.Total() != 4 {
		t.Errorf("Take %d, Read %d, total %d; want 3, 0, 4", c.Count(storetest.Take), c.Count(storetest.Read), c.Total())
	}
	c.Reset()
	if c.Total() != 0 {
		t.Errorf("total = %d after Reset", c.Total())
	}
}
