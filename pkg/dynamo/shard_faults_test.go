package dynamo_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// Replicas split and merge a bucket while requests fail and replies are lost. They
// admit no more than its limit and answer every call in time. Left alone they have it
// whole again.
func TestShardsUnderFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &watched{DB: newTable(t), keys: make(map[string]bool)}
		const budget = time.Second
		stores := make([]*dynamo.Store, 4)
		for i := range stores {
			stores[i] = newStore(t, db, func(cfg *dynamo.Config) {
				cfg.ShardUnits, cfg.Quiet, cfg.Attempt, cfg.Budget = 60, 2*time.Second, 100*time.Millisecond, budget
			})
		}
		defer closing(t, stores...)
		latency := dynamofake.Chance{Percent: 100, Fault: dynamofake.Fault{Latency: 5 * time.Millisecond}}
		calm := dynamofake.Random(rand.New(rand.NewPCG(1, 1)), latency)
		stormy := dynamofake.Random(rand.New(rand.NewPCG(1, 2)),
			dynamofake.Chance{Percent: 2, Fault: dynamofake.Fault{Kind: dynamofake.LoseReply}},
			dynamofake.Chance{Percent: 2, Fault: dynamofake.Fault{Kind: dynamofake.AppliedError}},
			dynamofake.Chance{Percent: 2, Fault: dynamofake.Fault{Kind: dynamofake.ServerError}},
			dynamofake.Chance{Percent: 2, Fault: dynamofake.Fault{Kind: dynamofake.Throttle}},
			dynamofake.Chance{Percent: 2, Fault: dynamofake.Fault{Latency: 150 * time.Millisecond}}, latency)
		limit := limiter.Custom("a", 1000, 300, time.Second)
		begin, most := time.Now(), 0
		var net, answered atomic.Int64
		use := func(s *dynamo.Store, r *rand.Rand) {
			for range 300 {
				n := []int64{1, 1, 2, 5, 40, 300}[r.IntN(6)]
				o := op(t, "e", limit, limiter.Spend{Take: tokens(n)})
				ops := []limiter.Op{o}
				asked := time.Now()
				ok, err := s.Take(t.Context(), time.Now(), ops)
				if took := time.Since(asked); took > 5*budget {
					t.Errorf("a call took %v", took)
				}
				if err == nil {
					answered.Add(1)
				}
				if ok {
					net.Add(n)
				}
				if ok && r.IntN(5) == 0 {
					net.Add(-n) // also where its outcome is unknown
					o.Shard, o.Spends = ops[0].Shard, []limiter.Spend{{Limit: "a", Refund: tokens(n)}}
					_, _ = s.Take(t.Context(), time.Now(), []limiter.Op{o})
				}
				time.Sleep(time.Duration(r.IntN(15)) * time.Millisecond)
			}
		}
		for round := range faultyRounds {
			db.SetPlan(stormy)
			var group sync.WaitGroup
			for i := range 2 * len(stores) {
				group.Go(func() { use(stores[i/2], rand.New(rand.NewPCG(uint64(round), uint64(i)))) })
			}
			group.Wait()
			db.SetPlan(calm)
			most = max(most, db.live(t))
			if got, bound := net.Load(), 1000+300*time.Since(begin).Milliseconds()/1000; got > bound {
				t.Fatalf("round %d: %d tokens net, more than %d", round, got, bound)
			}
			time.Sleep(time.Minute)
			if n := db.live(t); n != 1 {
				t.Fatalf("round %d: %d shards after a quiet time, want 1", round, n)
			}
		}
		if most < 2 || answered.Load() < faultyRounds*1300 {
			t.Errorf("%d shards at most, %d answers: too little happened", most, answered.Load())
		}
		for _, want := range []bool{true, false} {
			mustTake(t, stores[0], time.Now(), want, op(t, "e", limit, limiter.Spend{Take: tokens(1000)}))
		}
		for i, s := range stores {
			if st := s.Stats(); st.Owed != 0 {
				t.Errorf("store %d: %+v", i, st)
			}
		}
		t.Logf("%d shards at most, %d answered, %d tokens net", most, answered.Load(), net.Load())
	})
}
