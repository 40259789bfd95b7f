package engine_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// faults is a plan by which the next calls meet these faults, one each, and none after them.
func faults(each ...dynamofake.Fault) dynamofake.Plan {
	return func(dynamofake.Call) dynamofake.Fault {
		if len(each) == 0 {
			return dynamofake.Fault{}
		}
		next := each[0]
		each = each[1:]
		return next
	}
}

// A take is refused, as the refund that it was planned behind arrives after it. The reply to
// the refund comes first. The refused take must not count as tokens that are gone.
func TestARefusedTakeTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		e := newEngine(t, db, nil)
		defer closing(t, e)
		l := limiter.PerDay("l", 10)
		mustTake(t, e, true, op(t, "e", l, limiter.Spend{Take: tokens(9)}))

		gate := dynamofake.NewGate()
		db.SetPlan(faults(dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: gate}, dynamofake.Fault{Latency: 50 * time.Millisecond}))
		var g sync.WaitGroup
		g.Go(func() { mustTake(t, e, true, op(t, "e", l, limiter.Spend{Refund: tokens(5)})) })
		time.Sleep(10 * time.Millisecond)
		g.Go(func() { mustTake(t, e, true, op(t, "e", l, limiter.Spend{Take: tokens(4)})) })
		time.Sleep(10 * time.Millisecond)
		gate.Release()
		g.Wait()
		if got := e.Stats().Refused; got != 1 {
			t.Errorf("%d writes were refused, want 1: the take that came before the refund", got)
		}
		wantBalance(t, e, op(t, "e", l, limiter.Spend{}), 2)
	})
}
