package dynamo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// Two processes that want all of a bucket get about as much of it each.
func TestHoldersShareABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		stores := []*dynamo.Store{newStore(t, db, withLeases), newStore(t, db, withLeases)}
		defer closing(t, stores...)
		mustTake(t, stores[0], t0(), true, op(t, "e", limiter.Custom("l", 1000, 1000, time.Second), limiter.Spend{Take: tokens(1)}))
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 4 * time.Millisecond} })
		began := time.Now()
		admitted := [2]int64{}
		done := make(chan struct{})
		for i, s := range stores {
			go func() {
				defer func() { done <- struct{}{} }()
				for time.Since(began) < 20*time.Second {
					ok, err := s.Take(t.Context(), t0().Add(time.Since(began)), []limiter.Op{op(t, "e", limiter.Custom("l", 1000, 1000, time.Second), limiter.Spend{Take: tokens(1)})})
					if err != nil {
						t.Error(err)
					}
					if ok {
						admitted[i]++
					}
					time.Sleep(500 * time.Microsecond)
				}
			}()
		}
		<-done
		<-done
		sum := admitted[0] + admitted[1]
		t.Logf("%v admitted, %+v, %+v", admitted, stores[0].Stats(), stores[1].Stats())
		if sum > 21_000 || sum < 19_000 {
			t.Errorf("%d admitted, want nearly 1000 and 1000 in a second", sum)
		}
		if most := max(admitted[0], admitted[1]); most > sum*3/4 {
			t.Errorf("%v admitted, want it shared", admitted)
		}
	})
}

// daily is a take of a token of a bucket that is not refilled while a test runs.
func daily(t *testing.T, capacity int64) limiter.Op {
	t.Helper()
	return op(t, "e", limiter.PerDay("l", capacity), limiter.Spend{Take: tokens(1)})
}

// A bucket that is asked for now and then costs the same as without leases.
func TestAColdBucketHasNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, withLeases)
		defer closing(t, s)
		mustTake(t, s, t0(), true, daily(t, 1000))
		for i := range 20 {
			time.Sleep(1100 * time.Millisecond)
			made := calls(db, func() { mustTake(t, s, after(float64(i)), true, daily(t, 1000)) })
			if made["UpdateItem"] != 1 || made["GetItem"] > 0 {
				t.Errorf("calls: %v, want one write", made)
			}
		}
		if got := s.Stats().Granted; got > 0 {
			t.Errorf("%d leases for a request a second", got)
		}
	})
}

// No process leases more than the policy allows, and none when it allows none: then
// its lease is returned at once.
func TestPoliciesOfLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s, another := newStore(t, db, withLeases), newStore(t, db, nil)
		defer closing(t, s, another)
		for i := range 500 {
			o, left, now := daily(t, 100_000), daily(t, 100_000), after(float64(i)/1000)
			o.Lease.Max = tokens(200)
			left.Spends[0] = limiter.Spend{Limit: "l", Look: true}
			mustTake(t, s, now, true, o)
			synctest.Wait()
			mustTake(t, another, now, true, left)
			if held := tokens(100_000-1-int64(i)) - left.Spends[0].Bucket.Tokens; held > tokens(200) {
				t.Fatalf("after %d: %d millitokens are held, want 200 tokens at most", i, held)
			}
			time.Sleep(time.Millisecond)
		}
		if s.Stats().Leases != 1 {
			t.Fatalf("%+v, want a lease", s.Stats())
		}
		none := daily(t, 100_000)
		none.Lease.None = true
		mustTake(t, s, t0(), true, none)
		synctest.Wait()
		wantNothingLeased(t, db)
		for range 50 {
			wantCalls(t, calls(db, func() { mustTake(t, s, t0(), true, none) }), map[string]int{"UpdateItem": 1})
		}
		wantNothingLeased(t, db)
	})
}
