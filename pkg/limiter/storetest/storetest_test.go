package storetest_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

func TestReference(t *testing.T) {
	storetest.Run(t, func(*testing.T) limiter.Store { return storetest.NewReference() })
}

// TestWrappers: the wrapper of faults without faults, and the one that counts, conform like their
// store.
func TestWrappers(t *testing.T) {
	storetest.Run(t, func(*testing.T) limiter.Store {
		return storetest.NewCounting(storetest.NewFaulty(storetest.NewReference(), nil))
	})
}

// late is a store that decides late if the deadline passes before it begins.
type late struct{ limiter.Store }

func (s late) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	for range 20 {
		_ = ctx.Done()
		runtime.Gosched()
	}
	passed := errors.Is(ctx.Err(), context.DeadlineExceeded)
	if passed {
		ctx = context.WithoutCancel(ctx)
	}
	admitted, err := s.Store.Take(ctx, now, ops)
	for i := range ops {
		ops[i].Late = passed && err == nil
	}
	return admitted, err
}

// TestLateDecisionsAreLegal: a store may decide late.
func TestLateDecisionsAreLegal(t *testing.T) {
	storetest.Run(t, func(*testing.T) limiter.Store { return late{storetest.NewReference()} })
}
