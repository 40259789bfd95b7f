package dynamo_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// withLeases has a store take tokens in advance.
func withLeases(cfg *dynamo.Config) { cfg.Leases = true }

// A hot bucket is decided from memory: of thousands of decisions few write, and none is
// denied that there are tokens for.
func TestAHotBucketIsServedFromALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, withLeases)
		defer closing(t, s)
		l := limiter.Custom("l", 100_000, 10_000, time.Second)
		one := func() limiter.Op { return op(t, "e", l, limiter.Spend{Take: tokens(1)}) }
		mustTake(t, s, t0(), true, one())
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 4 * time.Millisecond} })
		began := time.Now()
		const callers, all = 64, 10_000
		var asked, denied atomic.Int64
		made := calls(db, func() {
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for asked.Add(1) <= all {
						ok, err := s.Take(t.Context(), t0().Add(time.Since(began)), []limiter.Op{one()})
						if err != nil {
							t.Error(err)
						}
						if !ok {
							denied.Add(1)
						}
					}
				})
			}
			wg.Wait()
		})
		t.Logf("%d decisions in %v: %v, %+v", all, time.Since(began), made, s.Stats())
		if made["UpdateItem"] > all/500 || made["GetItem"] > 0 {
			t.Errorf("%v for %d decisions, want at most 0.002 writes each and no read", made, all)
		}
		if denied.Load() > 0 {
			t.Errorf("%d of %d were denied, with 100,000 tokens in the bucket", denied.Load(), all)
		}
	})
}
