package dynamo_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// once is a plan by which the next call meets a fault, and none after it.
func once(f dynamofake.Fault) dynamofake.Plan {
	met := false
	return func(dynamofake.Call) dynamofake.Fault {
		if met {
			return dynamofake.Fault{}
		}
		met = true
		return f
	}
}

// A charge of which the first copy comes late is booked once: by that, or by another write
// that is certainly the only one.
func TestALateCopyOfAChargeBooksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		l := limiter.PerHour("l", 1000)
		s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Attempt, cfg.Budget = 0, 0 })
		other := newStore(t, db, nil)
		defer closing(t, s, other)
		mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: tokens(300)}))
		mustTake(t, other, t0(), true, op(t, "e", l, limiter.Spend{Take: 1000}))
		gate := dynamofake.NewGate()
		db.SetPlan(once(dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: gate}))
		done := make(chan error, 1)
		go func() {
			_, err := s.Take(t.Context(), t0(), []limiter.Op{op(t, "e", l, limiter.Spend{Charge: tokens(100)})})
			done <- err
		}()
		time.Sleep(50 * time.Millisecond)
		mustTake(t, other, t0(), true, op(t, "e", l, limiter.Spend{Refund: tokens(301)})) // it is full: the charge's write is refused
		err := <-done
		gate.Release()
		synctest.Wait()
		o := op(t, "e", l, limiter.Spend{})
		mustTake(t, other, t0(), true, o)
		booked := (tokens(1000) - o.Spends[0].Bucket.Tokens) / tokens(100)
		if booked > 1 || err == nil && booked != 1 || err != nil && !errors.Is(err, limiter.ErrUncertain) {
			t.Errorf("it was booked %d times, error %v", booked, err)
		}
	})
}

// A copy of a take that arrives late puts an old id back into the slot of the process. A
// charge that is sent again after that, its reply being late, books nothing more.
func TestALateCopyOfATakeLetsNoChargeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		l := limiter.PerHour("l", 1000)
		s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Attempt, cfg.Budget = 0, 0 })
		defer closing(t, s)
		mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: tokens(300)}))
		take, charge := dynamofake.NewGate(), dynamofake.NewGate()
		db.SetPlan(once(dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: take}))
		mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: tokens(10)}))
		db.SetPlan(once(dynamofake.Fault{Kind: dynamofake.HoldReply, Gate: charge}))
		done := make(chan error, 1)
		go func() {
			_, err := s.Take(t.Context(), t0(), []limiter.Op{op(t, "e", l, limiter.Spend{Charge: tokens(100)})})
			done <- err
		}()
		synctest.Wait() // the charge is applied
		take.Release()
		synctest.Wait() // so is the take, once more
		err := <-done
		charge.Release()
		synctest.Wait()
		o := op(t, "e", l, limiter.Spend{})
		mustTake(t, s, t0(), true, o)
		if left := o.Spends[0].Bucket.Tokens; left != tokens(580) && left != tokens(590) || err != nil {
			t.Errorf("%d millitokens are left, want 1000 - 300 - 10 or 20 - 100 tokens; error %v", left, err)
		}
	})
}
