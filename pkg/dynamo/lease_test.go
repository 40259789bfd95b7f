package dynamo_test

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// withLeases has a store take tokens in advance.
func withLeases(cfg *dynamo.Config) { cfg.Leases = true }

// warm asks for a token of each bucket every 5 ms, from now on, until the store holds leases
// of all of them. It returns how many tokens it took of each.
func warm(t *testing.T, s *dynamo.Store, now time.Time, ops ...limiter.Op) (taken int64) {
	t.Helper()
	const requests, pause = 400, 5 * time.Millisecond
	for ; taken < requests; taken++ {
		if s.Stats().Leases == int64(len(ops)) {
			return taken
		}
		for _, o := range ops {
			o.Spends = []limiter.Spend{{Limit: o.Spends[0].Limit, Take: tokens(1)}}
			mustTake(t, s, now.Add(time.Duration(taken)*pause), true, o)
		}
		time.Sleep(pause)
	}
	t.Fatalf("%d requests for a token and no lease: %+v", requests, s.Stats())
	return 0
}

// leasedOf returns the attributes of the one bucket's item that are about leases.
func leasedOf(t *testing.T, db *dynamofake.DB) map[string]string {
	t.Helper()
	item := bucketItem(t, db)
	maps.DeleteFunc(item, func(name, _ string) bool { return !slices.Contains([]string{"ls", "kc", "kt", "bc"}, name) })
	return item
}

func wantNothingLeased(t *testing.T, db *dynamofake.DB) {
	t.Helper()
	if got := leasedOf(t, db); len(got) > 0 {
		t.Errorf("out on lease: %v, want nothing", got)
	}
}

// A hot bucket is decided from memory: of thousands of decisions few write, and none is
// denied that there are tokens for.
func TestAHotBucketIsServedFromALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, withLeases)
		defer closing(t, s)
		l := limiter.Custom("l", 100_000, 10_000, time.Second)
		mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: tokens(1)}))
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 4 * time.Millisecond} })
		began := time.Now()
		const callers, all = 64, 10_000
		var asked, denied atomic.Int64
		made := calls(db, func() {
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for asked.Add(1) <= all {
						ok, err := s.Take(t.Context(), t0().Add(time.Since(began)), []limiter.Op{op(t, "e", l, limiter.Spend{Take: tokens(1)})})
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

// A lease that is parked while its bucket fills up keeps its place in the capacity: the
// takes of one moment then, of its holder and of others, are no more than that.
func TestAParkedLeaseThenABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		a, b := newStore(t, db, withLeases), newStore(t, db, withLeases)
		defer closing(t, a, b)
		const capacity = 1000
		l := limiter.Custom("l", capacity, 100, time.Second)
		o := op(t, "e", l, limiter.Spend{Take: tokens(1)})
		const worth = 300
		spent := int(warm(t, a, t0(), o)) + worth
		for range worth { // so that the lease is worth something
			mustTake(t, a, t0(), true, o)
		}
		admitted := 0
		for round, s := range []*dynamo.Store{b, a, b, a, b, a} {
			synctest.Wait() // for the lease writes of the other
			for range 2 * capacity {
				ok, err := s.Take(t.Context(), after(1000+0.02*float64(round)), []limiter.Op{op(t, "e", l, limiter.Spend{Take: tokens(1)})})
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					admitted++
				}
			}
		}
		const refill = 10                                                              // of 100 ms
		if least := capacity - spent; admitted > capacity+refill || admitted < least { // the spent tokens of the lease were not reported
			t.Errorf("%d admitted in 100 ms, want %d to %d", admitted, least, capacity+refill)
		}
	})
}
