package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func brokenBudgets() []broken {
	return []broken{
		{"drops budgets", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error) {
			change := e.Change
			e.Change = func(before limiter.Record) (limiter.Record, error) {
				after, err := change(before)
				after.Budgets = nil
				return after, err
			}
			return r.Edit(ctx, now, ns, e)
		}), []string{"budgets/kept with their limits"}},
		{"stores budgets of no limit", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error) {
			done, err := r.Edit(ctx, now, ns, e)
			if errors.Is(err, limiter.ErrInvalid) {
				return limiter.Edited{}, r.PutLimits(ctx, ns, limiter.SystemLimitsRef(), limiter.Record{OnUnavailable: limiter.Deny})
			}
			return done, err
		}), []string{"budgets/refused"}},
	}
}
