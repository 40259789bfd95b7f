package dynamo_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// The balance of a bucket of several shards is adjusted in one transaction, and the list has one
// bucket with the sum.
func TestAdjustmentsOfShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, func(cfg *dynamo.Config) { cfg.ShardUnits, cfg.Quiet = 3, 24*time.Hour })
		defer closing(t, s)
		o := op(t, "e", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(1)})
		taken := int64(0)
		for s.Stats().Splits < 3 {
			mustTake(t, s, time.Now(), true, o)
			time.Sleep(100 * time.Millisecond)
			taken++
			if taken > 500 {
				t.Fatalf("no split: %+v", s.Stats())
			}
		}
		time.Sleep(time.Second) // the last split is done
		balance := tokens(1000 - taken)
		for _, step := range []struct {
			kind         limiter.AdjustKind
			amount, want int64
		}{
			{limiter.AdjustTopUp, tokens(10), balance + tokens(10)},
			{limiter.AdjustTakeOut, tokens(900), balance - tokens(890)},
			{limiter.AdjustTakeOut, tokens(5000), balance - tokens(5890)},
			{limiter.AdjustTakeOut, tokens(90_000), tokens(-10_000)},
			{limiter.AdjustSet, 777_001, 777_001},
			{limiter.AdjustReset, 0, tokens(1000)},
		} {
			now := time.Now()
			out, err := s.AdjustBucket(t.Context(), now, limiter.Adjustment{Bucket: o.Bucket, Kind: step.kind, Tokens: step.amount})
			if err != nil || !out.Found {
				t.Fatalf("%s: %+v, %v", step.kind.Action(), out, err)
			}
			const refill = 2500 // a thousandth of a second and a few shards lose parts of a millitoken
			if got := out.After.Limits[0].Tokens; got < step.want-4 || got > step.want+refill {
				t.Errorf("%s of %d: %d in the answer, want %d", step.kind.Action(), step.amount, got, step.want)
			}
			// An adjustment may begin a split, and a list misses its tokens until it is done.
			listed := listedTokens(t, s, o.Bucket, now)
			for time.Since(now) < time.Second && listed < step.want-4 {
				time.Sleep(10 * time.Millisecond)
				listed = listedTokens(t, s, o.Bucket, now)
			}
			if listed < step.want-4 || listed > step.want+refill {
				t.Errorf("%s of %d: %d in the list, want %d", step.kind.Action(), step.amount, listed, step.want)
			}
		}
		time.Sleep(time.Second) // and so is that of the reset, which holds tokens for a round trip
		all := o
		all.Spends = []limiter.Spend{{Limit: "l", Take: tokens(999)}}
		mustTake(t, s, time.Now(), true, all)
		mustTake(t, s, time.Now(), false, all)
	})
}

// listedTokens returns the tokens of the one limit of the one bucket in the list.
func listedTokens(t *testing.T, s *dynamo.Store, of limiter.BucketKey, now time.Time) int64 {
	t.Helper()
	page, err := s.ListBuckets(t.Context(), now, of.Namespace, limiter.BucketFilter{Entity: of.Entity}, limiter.Page{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Key != of {
		t.Fatalf("the list is %+v, %v", page, err)
	}
	return page.Items[0].Limits[0].Tokens
}

// An adjustment with a key is made once, also when its answer was lost, and again after a day.
func TestAdjustmentsAreMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		var later atomic.Int64
		s := newStore(t, db, func(cfg *dynamo.Config) {
			cfg.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
		})
		defer closing(t, s)
		o := op(t, "e", limiter.Custom("l", 1000, 1, 24*time.Hour), limiter.Spend{Take: tokens(900)})
		mustTake(t, s, t0(), true, o)
		adjust := func(repeated bool, want int64) {
			t.Helper()
			out, err := s.AdjustBucket(t.Context(), t0(), limiter.Adjustment{Bucket: o.Bucket, Kind: limiter.AdjustTopUp, Tokens: tokens(10), Once: "k"})
			if got := out.After.Limits; err != nil || out.Repeated != repeated || got[0].Tokens/limiter.Milli != want {
				t.Fatalf("%+v, %v; want a balance of %d", out, err, want)
			}
		}
		for i, f := range []dynamofake.Fault{{Kind: dynamofake.LoseReply}, {Kind: dynamofake.AppliedError}, {Kind: dynamofake.Conflict}, {Kind: dynamofake.Throttle}} {
			left := 2
			db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
				if c.Op != "TransactWriteItems" || left == 0 {
					return dynamofake.Fault{}
				}
				left--
				return f
			})
			adjust(false, int64(110+10*i))
			if left > 0 {
				t.Errorf("fault %d did not happen", i)
			}
			later.Add(int64(limiter.OnceAge - time.Minute))
			adjust(true, int64(110+10*i))
			later.Add(int64(time.Minute + time.Second))
		}
	})
}

// A call that ends before the leases are back changes nothing, and leaves no trace in the item.
func TestAnAdjustmentThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newAdjusted(t, adjustedLimit(), true)
		defer f.end()
		time.Sleep(3 * time.Second)
		for slices.ContainsFunc(f.stores, func(s *dynamo.Store) bool { return s.Stats().Leases == 0 }) {
			time.Sleep(time.Millisecond) // a reset waits for leases only
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		out, err := f.stores[0].AdjustBucket(ctx, time.Now(), limiter.Adjustment{Bucket: f.op().Bucket})
		if err == nil {
			t.Fatalf("%+v, want an error", out)
		}
		before := f.since(time.Time{}, time.Now())
		time.Sleep(5 * time.Second)
		if got := f.since(time.Time{}, time.Now()) - before; got > 5*adjustedRate+100 {
			t.Errorf("%d tokens were given in 5 s after a reset that was given up", got)
		}
		if got := f.stores[0].Stats().Leases; got != 1 {
			t.Errorf("%d leases, want 1: they are asked for no more", got)
		}
	})
}
