package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// brokenLeavers are stores that are wrong for canceled calls.
func brokenLeavers() []broken {
	// forgetting is a store that applies a call that is canceled before the answer.
	forgetting := func(kind error, times int) func(*reference) limiter.Store {
		return breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			gone, ok := ctx.(*leaving)
			if !ok || gone.moment%2 == 0 {
				return r.Take(ctx, now, ops)
			}
			for range times {
				if _, err := r.Take(ctx, now, ops); err != nil {
					return false, err
				}
			}
			<-ctx.Done()
			return false, fmt.Errorf("%w: %w", kind, ctx.Err())
		})
	}
	return []broken{
		{"keeps the takes of canceled calls", forgetting(limiter.ErrUncertain, 1), []string{"leave/takes are returned"}},
		{"charges twice for canceled calls", forgetting(limiter.ErrUncertain, 2), []string{"leave/charges are applied once"}},
		{"calls each decision late", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			for i := range ops {
				ops[i].Late = true
			}
			return r.Take(ctx, now, ops)
		}), []string{"late/never before the deadline"}},
		{"admits late without a take", breakTake(func(ctx context.Context, r *reference, now time.Time, ops []limiter.Op) (bool, error) {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return true, nil
			}
			return r.Take(ctx, now, ops)
		}), []string{"late/is taken"}},
		{"charges and returns an error", forgetting(limiter.ErrUnavailable, 1), []string{"leave/charges are applied once"}},
	}
}
