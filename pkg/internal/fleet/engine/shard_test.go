package engine_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// A bucket that is written too often is split, and merged when it is quiet. Neither gives a
// token away, or loses one.
func TestABucketIsSplitAndMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 2 * time.Millisecond} })
		engines := make([]*engine.Engine, 2)
		for i := range engines {
			engines[i] = newEngine(t, db, func(cfg *engine.Config) {
				cfg.Attempt, cfg.Budget, cfg.ShardUnits, cfg.Quiet = 0, 0, 50, time.Minute
			})
		}
		defer closing(t, engines...)
		l, began := limiter.PerDay("l", 10_000), time.Now()
		var admitted, denied atomic.Int64
		var g errgroup.Group
		for i := range 20 {
			g.Go(func() error {
				for range 250 {
					ok, err := engines[i%2].Take(t.Context(), time.Now(), []limiter.Op{op(t, "e", l, limiter.Spend{Take: tokens(1)})})
					if err != nil {
						return err
					}
					if ok {
						admitted.Add(1)
					} else {
						denied.Add(1)
					}
					time.Sleep(20 * time.Millisecond)
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		splits := engines[0].Stats().Splits + engines[1].Stats().Splits
		if splits == 0 || denied.Load() > 20 { // one call at a time takes from several shards
			t.Errorf("%d splits, %d admitted, %d denied; want some, 5000 and few", splits, admitted.Load(), denied.Load())
		}
		mustTake(t, engines[1], true, op(t, "e", l, limiter.Spend{Take: tokens(4000)})) // of all shards
		mustTake(t, engines[0], false, op(t, "e", l, limiter.Spend{Take: tokens(2000)}))
		time.Sleep(15 * time.Minute)
		merges := engines[0].Stats().Merges + engines[1].Stats().Merges
		if splits = engines[0].Stats().Splits + engines[1].Stats().Splits; merges != splits {
			t.Errorf("%d merges of %d splits", merges, splits)
		}
		refilled := int64(time.Since(began).Seconds() * 10_000 / (24 * 3600))
		wantBalance(t, engines[1], op(t, "e", l, limiter.Spend{}), 6000-admitted.Load()+refilled)
	})
}
