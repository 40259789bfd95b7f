package dynamo_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A decision from leases allocates nothing, of one bucket or of a child and its parent.
func TestADecisionFromLeasesAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, withLeases)
		defer closing(t, s)
		ops := make([]limiter.Op, 0, 2)
		for _, name := range []string{"child", "parent"} {
			ops = append(ops, op(t, name, limiter.PerDay("l", 1_000_000_000), limiter.Spend{Take: tokens(1)}))
		}
		warm(t, s, t0(), ops...)
		for range 5000 {
			mustTake(t, s, t0(), true, ops...)
			synctest.Wait()
		}
		for n := range 2 {
			ctx, now := t.Context(), t0()
			made := calls(db, func() {
				got := testing.AllocsPerRun(100, func() {
					if ok, err := s.Take(ctx, now, ops[:n+1]); err != nil || !ok {
						t.Error(ok, err)
					}
				})
				if got > 0 {
					t.Errorf("%v allocations for a decision on %d buckets, want none", got, n+1)
				}
			})
			wantCalls(t, made, map[string]int{})
		}
	})
}

// Where more is asked for than there is, the item is asked for little more often than
// once in a quantum; what is admitted is what is refilled, and what is denied is told
// a time that is true.
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

// A lane that holds something stays in memory, whatever else comes.
func TestALaneWithALeaseStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Leases, cfg.MaxLanes, cfg.Idle = true, 1, 100*time.Millisecond })
		defer closing(t, s)
		held := op(t, "held", limiter.PerDay("l", 1_000_000), limiter.Spend{Take: tokens(1)})
		warm(t, s, t0(), held)
		for i := range 300 {
			mustTake(t, s, t0(), true, op(t, string(rune('a'+i)), limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)}))
		}
		wantCalls(t, calls(db, func() { mustTake(t, s, t0(), true, held) }), map[string]int{})
	})
}

// A shard that is to be split has nothing out on lease: it is split.
func TestLeasesMakeWayForASplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Leases, cfg.ShardUnits = true, 20 })
		defer closing(t, s)
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 4 * time.Millisecond} })
		began := time.Now()
		for i := 0; time.Since(began) < 20*time.Second && s.Stats().Splits == 0; i++ {
			o := op(t, "e", limiter.Custom("l", 1000, 1000, time.Second), limiter.Spend{Take: tokens(1 + int64(i%2)*200)})
			if _, err := s.Take(t.Context(), t0().Add(time.Since(began)), []limiter.Op{o}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if got := s.Stats(); got.Splits == 0 || got.Granted == 0 {
			t.Errorf("%+v, want leases first, and a split then", got)
		}
	})
}

// What the dead held of a shard that nobody asks does not keep it from being merged.
func TestDeadLeasesMakeWayForAMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		cut := &intercept{DB: db}
		small := func(leases bool) func(*dynamo.Config) {
			return func(cfg *dynamo.Config) { cfg.Leases, cfg.ShardUnits, cfg.Quiet = leases, 20, 2*time.Second }
		}
		dead, b := newStore(t, cut, small(true)), newStore(t, db, small(false))
		defer closing(t, b)
		l := limiter.Custom("l", 1000, 1000, time.Second)
		began := time.Now()
		ask := func(s *dynamo.Store, shard int, n int64) {
			t.Helper()
			o := op(t, "e", l, limiter.Spend{Take: tokens(n)})
			o.Shard, o.Lease.None = shard, shard == 0
			if _, err := s.Take(t.Context(), t0().Add(time.Since(began)), []limiter.Op{o}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		for dead.Stats().Splits == 0 {
			ask(dead, 0, 1)
		}
		for dead.Stats().Leases == 0 { // not before the new shard is no more taken for busy
			ask(dead, 2, 1)
		}
		cut.set(func(context.Context, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			return nil, errTest
		})
		for range 60 {
			ask(b, 1, 1)
			time.Sleep(500 * time.Millisecond)
		}
		if got := b.Stats(); got.Reaped != 1 || bucketItem(t, db)["lvl"] != "1" {
			t.Errorf("the bucket is one of %s shards; %+v", bucketItem(t, db)["lvl"], got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_ = dead.Close(ctx)
	})
}
