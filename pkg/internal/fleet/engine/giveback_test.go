package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// Tokens that are being given back, as another bucket denied, count for the next request of the
// process and for its answer, at any moment.
func TestTokensOnTheirWayBackAreThere(t *testing.T) {
	const trip = 5 * time.Millisecond
	limits, err := limiter.NewLimits(limiter.PerDay("x", 1), limiter.PerDay("y", 10))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(t *testing.T, x, y int64) limiter.Op {
		o := op(t, "two", limiter.PerDay("x", 1), limiter.Spend{})
		o.Limits, o.Spends = limits, []limiter.Spend{{Limit: "x", Take: tokens(x)}, {Limit: "y", Take: tokens(y)}}
		return o
	}
	for _, after := range []time.Duration{0, time.Millisecond, trip - time.Millisecond, trip + time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: trip} })
				e := newEngine(t, db, nil)
				defer closing(t, e)
				empty := op(t, "empty", limiter.PerDay("l", 1), limiter.Spend{Take: tokens(1)})
				mustTake(t, e, true, empty)
				mustTake(t, e, true, ask(t, 1, 0))
				mustTake(t, e, false, ask(t, 0, 3), empty)
				time.Sleep(after)
				denied := ask(t, 1, 1)
				mustTake(t, e, false, denied)
				if got := denied.Spends[1].Bucket.Tokens; got != tokens(10) {
					t.Errorf("a denial by another limit reports %d millitokens, want 10 tokens", got)
				}
				mustTake(t, e, true, ask(t, 0, 10))
			})
		})
	}
}
