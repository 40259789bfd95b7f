package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// An answer is of the time of its decision, on the caller's clock, also where replies correct
// the clock while the call waits.
func TestAnswersAreOfTheTimeOfTheCall(t *testing.T) {
	for name, deadline := range map[string]time.Duration{"in time": time.Minute, "late": 15 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := awsdb.NewClock(nil, 0)
				db := newTable(t)
				e := newEngine(t, db, func(cfg *engine.Config) { cfg.Clock = clock })
				defer closing(t, e)
				o := op(t, "u", limiter.PerSecond("l", 300), limiter.Spend{Take: tokens(10)})
				mustTake(t, e, true, o)
				db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 20 * time.Millisecond} })
				at := time.Now()
				time.AfterFunc(10*time.Millisecond, func() { clock.Observe(time.Now(), time.Now(), time.Now().Add(53*time.Millisecond)) })
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				ops := []limiter.Op{o}
				if admitted, err := e.Take(ctx, at, ops); !admitted || err != nil {
					t.Fatalf("admitted = %t, %v", admitted, err)
				}
				if got := clock.State().Offset; got != 33*time.Millisecond {
					t.Fatalf("the correction is %v, want 33ms", got)
				}
				if got := ops[0].Spends[0].Bucket.Refilled - at.UnixMilli(); got != 0 || ops[0].Late != (name == "late") {
					t.Errorf("the answer is of %d ms after the call's time, late is %t", got, ops[0].Late)
				}
			})
		})
	}
}
