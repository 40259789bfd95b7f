package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// faultyCalls is a plan in which every sixth call of an operation fails, each time in
// another way. So a workload meets every fault some number of times.
func faultyCalls() dynamofake.Plan {
	f := func(kinds ...dynamofake.Kind) []dynamofake.Kind { return kinds }
	kinds := map[string][]dynamofake.Kind{
		"UpdateItem": f(dynamofake.Throttle, dynamofake.AppliedError, dynamofake.LoseReply, dynamofake.HoldRequest, dynamofake.Conflict, dynamofake.Duplicate, dynamofake.ServerError, dynamofake.HoldReply),
		"GetItem":    f(dynamofake.Throttle, dynamofake.ServerError, dynamofake.LoseReply),
		"PutItem":    f(dynamofake.AppliedError, dynamofake.Throttle, dynamofake.LoseReply),
	}
	slow := slow()
	return func(c dynamofake.Call) dynamofake.Fault {
		if all := kinds[c.Op]; c.N%6 == 0 && len(all) > 0 {
			return dynamofake.Fault{Kind: all[c.N/6%len(all)]}
		}
		return slow(c)
	}
}

// besieged are replicas whose calls fail now and then. They all use a few buckets,
// which refill next to nothing meanwhile.
type besieged struct {
	*testing.T

	replicas []*engine.Engine
	limit    limiter.Limit
	taken    [4]atomic.Int64 // millitokens that were certainly taken, less those that may have been given back
	failed   atomic.Int64
}

// call is one caller: takes, gives some of it back, charges a little.
func (b *besieged) call(e *engine.Engine, r *rand.Rand) {
	for range 12 {
		bucket := r.IntN(len(b.taken))
		took := b.spend(e, bucket, limiter.Spend{Take: tokens(1 + r.Int64N(3))})
		switch {
		case took > 0 && r.IntN(4) == 0:
			b.spend(e, bucket, limiter.Spend{Refund: took})
		case r.IntN(8) == 0:
			b.spend(e, bucket, limiter.Spend{Charge: tokens(1)})
		}
	}
}

// spend returns the amount that was certainly taken.
func (b *besieged) spend(e *engine.Engine, bucket int, sp limiter.Spend) int64 {
	b.taken[bucket].Add(-sp.Refund) // perhaps
	ok, err := e.Take(b.Context(), time.Now(), []limiter.Op{op(b.T, fmt.Sprint("e", bucket), b.limit, sp)})
	switch {
	case errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrUncertain):
		b.failed.Add(1)
		return 0
	case err != nil:
		b.Errorf("%+v: %v", sp, err)
		return 0
	case ok:
		b.taken[bucket].Add(sp.Take)
		return sp.Take
	}
	return 0
}

// With any faults no more is admitted than the limit allows, other tokens stay
// available, and the replicas go on.
func TestNothingIsWonByFaults(t *testing.T) {
	for _, leases := range []bool{false, true} {
		t.Run(fmt.Sprintf("leases %t", leases), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				db.SetPlan(faultyCalls())
				b := &besieged{T: t, limit: limiter.PerDay("l", 200)}
				for range 3 {
					b.replicas = append(b.replicas, newEngine(t, db, func(cfg *engine.Config) { cfg.Attempt, cfg.Budget, cfg.Leases = 0, 20*time.Second, leases }))
				}
				var g sync.WaitGroup
				for caller := range 8 * len(b.replicas) {
					r := rand.New(rand.NewPCG(7, uint64(caller))) // #nosec G404 G115 -- repeatable
					g.Go(func() { b.call(b.replicas[caller%len(b.replicas)], r) })
				}
				g.Wait()
				db.SetPlan(nil)
				closing(t, b.replicas...)
				total := int64(0)
				for i := range b.taken {
					n := b.taken[i].Load()
					if total += n; n > tokens(201) {
						t.Errorf("bucket %d: %d millitokens were admitted, at most %d may be", i, n, tokens(201))
					}
				}
				var lost, owed int64
				for _, e := range b.replicas {
					lost, owed = lost+e.Stats().Lost, owed+e.Stats().Owed
				}
				t.Logf("%d millitokens admitted, %d calls failed, %d lost, faults %v", total, b.failed.Load(), lost, db.Faults())
				if owed != 0 || total < tokens(300) {
					t.Errorf("%d millitokens admitted, want at least %d; %d requests are owed after Close", total, tokens(300), owed)
				}
			})
		})
	}
}
