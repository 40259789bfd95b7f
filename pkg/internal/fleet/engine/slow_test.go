package engine_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A limit that refills next to nothing, or little, is leased where it has tokens for a while.
func TestSlowLimitsAreLeased(t *testing.T) {
	for _, tc := range []struct {
		name  string
		limit limiter.Limit
	}{
		{"a million a day", limiter.PerDay("l", 1_000_000)},
		{"one a day, of a million", limiter.Custom("l", 1_000_000, 1, 24*time.Hour)},
		{"20 a second, of a million", limiter.Custom("l", 1_000_000, 20, time.Second)},
		{"10,000 a minute", limiter.PerMinute("l", 10_000)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine(t, newTable(t), leased)
				defer closing(t, e)
				o := op(t, "e", tc.limit, limiter.Spend{Take: tokens(1)})
				warm(t, e, 2*time.Second, o)
				got := e.Stats()
				t.Logf("%+v", got)
				if got.Writes > 100 || got.Returned > 0 || got.Leases != 1 {
					t.Errorf("2000 calls: %d writes, %d leases, %d returned; want at most 100, 1, and 0", got.Writes, got.Leases, got.Returned)
				}
				time.Sleep(1500 * time.Millisecond)
				if got := e.Stats(); got.Leases != 0 || got.Returned != 1 {
					t.Errorf("after 1.5 s without a call: %d leases, %d returned; want 0 and 1", got.Leases, got.Returned)
				}
			})
		})
	}
}

// A lease is given back when no call comes, and kept through the pauses of a load that comes and
// goes: each return and each grant is a write.
func TestALeaseOutlastsShortPauses(t *testing.T) {
	for _, pause := range []time.Duration{30 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond, 600 * time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine(t, newTable(t), leased)
				defer closing(t, e)
				o := op(t, "e", limiter.PerSecond("l", 10_000), limiter.Spend{Take: tokens(1)})
				for range 30 {
					warm(t, e, 50*time.Millisecond, o)
					time.Sleep(pause)
				}
				got := e.Stats()
				t.Logf("%d writes, %d granted, %d renewed, %d returned", got.Writes, got.Granted, got.Renewed, got.Returned)
				if got.Returned > 6 || got.Served < 1300 {
					t.Errorf("1500 calls in 30 bursts: %d leases were returned, and %d calls served from leases; want at most 6, and most", got.Returned, got.Served)
				}
				time.Sleep(1500 * time.Millisecond)
				if got := e.Stats(); got.Leases != 0 {
					t.Errorf("%d leases after 1.5 s without a call", got.Leases)
				}
			})
		})
	}
}

// Replicas that lease of a quota which hardly refills use up all of it, and no more.
func TestAQuotaIsUsedUpByLeases(t *testing.T) {
	for _, quota := range []int64{300, 1100, 5000} {
		t.Run(strconv.FormatInt(quota, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				db.SetPlan(slow())
				var admitted, written atomic.Int64
				var g sync.WaitGroup
				for range 3 {
					e := newEngine(t, db, leased)
					g.Go(func() {
						defer closing(t, e)
						for range 2 * quota / 3 {
							ok, err := e.Take(t.Context(), time.Now(), []limiter.Op{op(t, "e", limiter.PerDay("l", quota), limiter.Spend{Take: tokens(1)})})
							if err != nil {
								t.Error(err)
							}
							if ok {
								admitted.Add(1)
							}
							time.Sleep(time.Millisecond)
						}
						time.Sleep(time.Second) // the others use the tokens that are given back
						written.Add(e.Stats().Writes)
					})
				}
				g.Wait()
				t.Logf("%d of %d were admitted, %d writes", admitted.Load(), quota, written.Load())
				if n := admitted.Load(); n > quota || n < quota-quota/50 {
					t.Errorf("%d were admitted, want %d, or 2 %% less", n, quota)
				}
			})
		})
	}
}
