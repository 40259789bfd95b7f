package dynamo_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// An extra is given once, to the callers of all replicas, and no more than it. Leases end for it, and begin again after
// it.
func TestAnExtraUnderLoad(t *testing.T) {
	for name, leases := range map[string]bool{"leases": true, "no leases": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newAdjusted(t, adjustedLimit(), leases)
				defer f.end()
				time.Sleep(3 * time.Second)
				began := time.Now()
				out, commit := f.adjust(limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: tokens(4000), Excess: limiter.ExcessKept, Once: "invoice"})
				balance := out.After.Limits[0].Tokens
				if !slices.Equal(out.Booked, []limiter.Booking{{Limit: "l", Tokens: tokens(4000)}}) || balance <= tokens(1000) || out.After.Leases > 0 {
					t.Fatalf("%+v; want all of it booked, and no lease", out)
				}
				time.Sleep(time.Until(began.Add(20 * time.Second)))
				f.bounded(commit, balance)
				if got := f.since(commit, time.Now()); got < balance/limiter.Milli {
					t.Errorf("%d tokens were given in 20 s, want %d at least", got, balance/limiter.Milli)
				}
				page, err := f.stores[0].ListBuckets(t.Context(), time.Now(), f.op().Bucket.Namespace, limiter.BucketFilter{}, limiter.Page{})
				if err != nil || len(page.Items) != 1 || (page.Items[0].Leases > 0) != leases {
					t.Errorf("after the extra the bucket is %+v, %v; want leases %v", page.Items, err, leases)
				}
			})
		})
	}
}

// An extra of a bucket of several shards is given by all of them, and outlives their merges.
func TestAnExtraOfShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, func(cfg *dynamo.Config) { cfg.ShardUnits, cfg.Quiet = 3, 20*time.Second })
		defer closing(t, s)
		o := op(t, "e", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(1)})
		for s.Stats().Splits < 3 {
			mustTake(t, s, time.Now(), true, o)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		a := limiter.Adjustment{Bucket: o.Bucket, Kind: limiter.AdjustTopUp, Tokens: tokens(5000), Excess: limiter.ExcessKept}
		out, err := s.AdjustBucket(t.Context(), time.Now(), a)
		if err != nil || out.Before.Shards < 2 || out.After.Limits[0].Tokens-out.Before.Limits[0].Tokens != a.Tokens {
			t.Fatalf("%+v, %v; want 5000 more in several shards", out, err)
		}
		large := o
		large.Spends = []limiter.Spend{{Limit: "l", Take: tokens(3000)}}
		mustTake(t, s, time.Now(), true, large)
		want := out.After.Limits[0].Tokens - tokens(3000)
		time.Sleep(2 * time.Minute) // of quiet
		got := listedTokens(t, s, o.Bucket, time.Now())
		page, err := s.ListBuckets(t.Context(), time.Now(), o.Bucket.Namespace, limiter.BucketFilter{}, limiter.Page{})
		if err != nil || page.Items[0].Shards >= out.After.Shards {
			t.Fatalf("%+v, %v; want fewer shards than %d", page.Items, err, out.After.Shards)
		}
		if refill := tokens(1000) / 24 / 20; got < want-8 || got > want+refill {
			t.Errorf("%d millitokens after the merges, want %d", got, want)
		}
		for left := got; left >= tokens(500); left -= tokens(500) {
			large.Spends = []limiter.Spend{{Limit: "l", Take: tokens(500)}}
			mustTake(t, s, time.Now(), true, large)
		}
	})
}
