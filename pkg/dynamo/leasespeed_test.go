package dynamo_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// Where more is asked for than there is, the item is asked for little more often than
// once in a quantum. The refill is admitted, and the retry-after of denials is true.
func TestAStormOnAnEmptyBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, withLeases)
		defer closing(t, s)
		l := limiter.Custom("l", 1000, 500, time.Second)
		mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: tokens(1)}))
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 4 * time.Millisecond} })
		began := time.Now()
		var admitted, asked, untrue atomic.Int64
		made := calls(db, func() {
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					for time.Since(began) < 10*time.Second {
						o := op(t, "e", l, limiter.Spend{Take: tokens(1)})
						ok, err := s.Take(t.Context(), t0().Add(time.Since(began)), []limiter.Op{o})
						if err != nil {
							t.Error(err)
						}
						asked.Add(1)
						if ok {
							admitted.Add(1)
						} else if sp := &o.Spends[0]; sp.Bucket.Tokens >= tokens(1) {
							untrue.Add(1)
						}
						time.Sleep(10 * time.Millisecond)
					}
				})
			}
			wg.Wait()
		})
		t.Logf("%d of %d admitted: %v, %+v", admitted.Load(), asked.Load(), made, s.Stats())
		if n := made["UpdateItem"] + made["GetItem"]; n > 1500 {
			t.Errorf("%d calls in 10 s, want no more than 3 in a quantum", n)
		}
		if got := admitted.Load(); got > 6000 || got < 5700 {
			t.Errorf("%d admitted, want nearly 1000 and 500 in a second", got)
		}
		if untrue.Load() > 0 {
			t.Errorf("%d denials say that the token is there", untrue.Load())
		}
	})
}
