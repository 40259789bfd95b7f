package dynamo_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// watched is a table that records the keys of its bucket items.
type watched struct {
	*dynamofake.DB
	mu   sync.Mutex
	keys map[string]bool
}

func (w *watched) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if pk, ok := in.Item["PK"].(*types.AttributeValueMemberS); ok && strings.Contains(pk.Value, "/BUCKET#") {
		w.mu.Lock()
		w.keys[pk.Value] = true
		w.mu.Unlock()
	}
	return w.DB.PutItem(ctx, in, opts...)
}

// live returns how many shards give tokens.
func (w *watched) live(t *testing.T) int {
	t.Helper()
	return len(w.shards(t))
}

// shards returns the items of the shards that give tokens. It reads them without the lock: in a bubble
// of synctest time stands still while a goroutine waits for a lock.
func (w *watched) shards(t *testing.T) []map[string]types.AttributeValue {
	t.Helper()
	w.mu.Lock()
	keys := slices.Sorted(maps.Keys(w.keys))
	w.mu.Unlock()
	var live []map[string]types.AttributeValue
	for _, pk := range keys {
		out, err := w.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("buckets"), Key: map[string]types.AttributeValue{
			"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: "#STATE"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if out.Item != nil && out.Item["rt"] == nil {
			live = append(live, out.Item)
		}
	}
	return live
}

// left returns how many millitokens of the first limit the shards have now.
func (w *watched) left(t *testing.T) int64 {
	t.Helper()
	var sum int64
	for _, item := range w.shards(t) {
		key := schema.Key{PK: item["PK"].(*types.AttributeValueMemberS).Value, SK: "#STATE"}
		state, err := schema.ParseBucket("buckets", key, item, nil)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now().UnixMilli()
		view := plan.At(state, now)
		sum += view.Tokens(0, now)
	}
	return sum
}

// A bucket that is written too often is split by its load. It gives all tokens of its
// shards, and is one again after a quiet time.
func TestLoadSplitsABucket(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of processor time")
	}
	synctest.Test(t, func(t *testing.T) {
		db := &watched{DB: newTable(t), keys: make(map[string]bool)}
		stores := make([]*dynamo.Store, 4)
		for i := range stores {
			stores[i] = newStore(t, db, func(cfg *dynamo.Config) { cfg.ShardUnits, cfg.Quiet = 100, 10*time.Second })
		}
		defer closing(t, stores...)
		limit := limiter.Custom("a", 1000, 200, time.Second)
		begin := time.Now()
		var admitted atomic.Int64
		ask := func(s *dynamo.Store, n int64) bool {
			ok, err := s.Take(t.Context(), time.Now(), []limiter.Op{op(t, "e", limit, limiter.Spend{Take: tokens(n)})})
			if err != nil {
				t.Error(err)
			}
			if ok {
				admitted.Add(n)
			}
			return ok
		}
		bound := func() int64 { return 1000 + 200*time.Since(begin).Milliseconds()/1000 }
		most := 0
		for range 400 { // 8 s
			time.Sleep(20 * time.Millisecond)
			var group sync.WaitGroup
			for _, s := range stores {
				group.Go(func() {
					ask(s, 1)
					ask(s, 1)
				})
			}
			group.Wait()
			if got := admitted.Load(); got > bound() {
				t.Fatalf("after %v %d tokens were admitted, more than %d", time.Since(begin), got, bound())
			}
			most = max(most, db.live(t))
		}
		t.Logf("%d shards at most, %d admitted", most, admitted.Load())
		if most < 4 {
			t.Fatalf("%d shards, want at least 4", most)
		}
		// A request is denied only where all shards together have too little. A shard that
		// is full loses its refill, so that fewer may be admitted than by one bucket.
		time.Sleep(3 * time.Second) // until no part is left to the other replicas
		call := time.Now()
		for ask(stores[0], 1) {
			synctest.Wait() // until the tokens collected beyond one are back
			call = time.Now()
		}
		if got := time.Since(call); got > 0 {
			t.Errorf("the last call took %v: it waited for replicas that were idle", got)
		}
		time.Sleep(100 * time.Millisecond) // until all that was collected is back
		refilled := 200 * time.Since(call).Milliseconds()
		if left := db.left(t) - refilled; left >= tokens(1)+32 {
			t.Errorf("a token was denied while the shards had %d millitokens", left)
		}
		if got := admitted.Load(); got > bound() || got < bound()-bound()/10 {
			t.Errorf("%d tokens were admitted, want %d at most, and 90%% of it at least", got, bound())
		}
		time.Sleep(6 * time.Second)
		if !ask(stores[1], 1000) || ask(stores[3], 1) {
			t.Error("a request for the whole capacity was denied, or left something")
		}
		time.Sleep(6 * time.Minute) // five halvings, each after a quiet time
		if n := db.live(t); n != 1 {
			t.Errorf("%d shards after a quiet time, want 1", n)
		}
		var splits, merges int64
		for _, s := range stores {
			splits, merges = splits+s.Stats().Splits, merges+s.Stats().Merges
		}
		if splits < int64(most-1) || merges != splits {
			t.Errorf("%d splits and %d merges, want as many, and at least %d", splits, merges, most-1)
		}
		if !ask(stores[2], 1000) {
			t.Error("the bucket that is one again does not hold its capacity")
		}
		if ask(stores[3], 1) {
			t.Error("the bucket that is one again holds more than its capacity")
		}
	})
}

// splitStore returns a store whose bucket of entity e under limits is in several
// shards, full.
func splitStore(t *testing.T, limits ...limiter.Limit) *dynamo.Store {
	t.Helper()
	db := &watched{DB: newTable(t), keys: make(map[string]bool)}
	s := newStore(t, db, func(cfg *dynamo.Config) { cfg.ShardUnits, cfg.Quiet = 3, 24*time.Hour })
	for range 200 {
		mustTake(t, s, time.Now(), true, opOf(t, limits, limiter.Spend{Limit: limits[0].Name, Take: 1}))
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(time.Hour)
	if n := db.live(t); n < 4 {
		t.Fatalf("%d shards, want at least 4", n)
	}
	return s
}

// opOf is an op on the bucket of entity e under several limits.
func opOf(t *testing.T, limits []limiter.Limit, spends ...limiter.Spend) limiter.Op {
	t.Helper()
	return limiter.Op{
		Bucket: limiter.BucketKey{Namespace: "default", Entity: "e", Resource: "r"},
		Limits: limitsOf(t, limits...), Generation: 1, Spends: spends,
	}
}

// takes decides an op of one spend and returns it as the store reports it.
func takes(t *testing.T, s *dynamo.Store, want bool, o limiter.Op) limiter.Op {
	t.Helper()
	ops := []limiter.Op{o}
	got, err := s.Take(t.Context(), time.Now(), ops)
	if err != nil || got != want {
		t.Fatalf("Take %+v: got %t, %v; want %t", o.Spends, got, err, want)
	}
	return ops[0]
}

// The shards of a bucket decide, together, as the bucket would.
func TestShardsDecideAsOne(t *testing.T) {
	perSecond := limiter.Custom("a", 1000, 3, time.Second)
	limits := []limiter.Limit{perSecond}
	for name, script := range map[string]func(t *testing.T, s *dynamo.Store){
		"all at once": func(t *testing.T, s *dynamo.Store) {
			takes(t, s, false, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(1000) + 1}))
			takes(t, s, true, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(1000)}))
			takes(t, s, false, opOf(t, limits, limiter.Spend{Limit: "a", Take: 1}))
		},
		"one after another": func(t *testing.T, s *dynamo.Store) {
			for i := range 1000 {
				o := takes(t, s, true, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(1)}))
				if got, want := o.Spends[0].Bucket.Tokens, tokens(int64(999-i)); got != want {
					t.Fatalf("%d millitokens left after %d takes, want %d", got, i+1, want)
				}
			}
			takes(t, s, false, opOf(t, limits, limiter.Spend{Limit: "a", Take: 1}))
		},
		"retry-after is true": func(t *testing.T, s *dynamo.Store) {
			takes(t, s, true, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(997)}))
			for _, n := range []int64{4, 5, 40, 1000} {
				take := opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(n)})
				sp := takes(t, s, false, take).Spends[0]
				ms, _ := sp.Bucket.RetryAfter(sp.Limits.Params(sp.Index), tokens(n), time.Now().UnixMilli())
				wait := time.Duration(ms) * time.Millisecond
				time.Sleep(wait - time.Millisecond)
				takes(t, s, false, take)
				time.Sleep(time.Millisecond)
				takes(t, s, true, take)
			}
		},
		"a look": func(t *testing.T, s *dynamo.Store) {
			look := opOf(t, limits, limiter.Spend{Limit: "a", Look: true})
			takes(t, s, true, look)
			takes(t, s, true, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(1000) - 999}))
			takes(t, s, false, look)
			time.Sleep(time.Second)
			takes(t, s, true, look)
		},
		"a refund goes where the take was": func(t *testing.T, s *dynamo.Store) {
			o := takes(t, s, true, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(10)}))
			if o.Shard == 0 {
				t.Fatal("the take says no shard")
			}
			o.Spends = []limiter.Spend{{Limit: "a", Refund: tokens(10)}}
			takes(t, s, true, o)
			takes(t, s, true, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(1000)}))
		},
		"more than a shard": func(t *testing.T, s *dynamo.Store) {
			o := takes(t, s, true, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(900)}))
			if o.Shard != 0 {
				t.Fatalf("a take of several shards says %d", o.Shard)
			}
			o.Spends = []limiter.Spend{{Limit: "a", Refund: tokens(400)}}
			takes(t, s, true, o)
			takes(t, s, true, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(500)}))
			takes(t, s, false, opOf(t, limits, limiter.Spend{Limit: "a", Take: 1}))
		},
		"a charge into debt": func(t *testing.T, s *dynamo.Store) {
			takes(t, s, true, opOf(t, limits, limiter.Spend{Limit: "a", Charge: tokens(2000)}))
			time.Sleep(333 * time.Second) // 1 below 0
			takes(t, s, false, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(1)}))
			time.Sleep(time.Second + 11*time.Millisecond) // up to a millitoken of each shard is not whole yet
			takes(t, s, true, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(2)}))
		},
		"a lower limit": func(t *testing.T, s *dynamo.Store) {
			o := opOf(t, []limiter.Limit{limiter.PerDay("a", 5)}, limiter.Spend{Limit: "a", Take: tokens(1)})
			o.Generation = 2
			for range 5 {
				takes(t, s, true, o)
			}
			takes(t, s, false, o)
		},
		"a denial elsewhere gives all back": func(t *testing.T, s *dynamo.Store) {
			o := opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(800)})
			other := op(t, "other", limiter.PerDay("a", 1), limiter.Spend{Take: tokens(2)})
			ops := []limiter.Op{o, other}
			if got, err := s.Take(t.Context(), time.Now(), ops); got || err != nil {
				t.Fatalf("got %t, %v; want a denial", got, err)
			}
			if got := ops[0].Spends[0].Bucket.Tokens; got != tokens(1000) {
				t.Errorf("%d millitokens reported, want all", got)
			}
			time.Sleep(time.Millisecond)
			takes(t, s, true, opOf(t, limits, limiter.Spend{Limit: "a", Take: tokens(1000)}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := splitStore(t, limits...)
				defer closing(t, s)
				script(t, s)
			})
		})
	}
}

// A store names the shards of a bucket, and the one that it takes from next.
func TestShardsAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := splitStore(t, limiter.PerDay("a", 1000))
		defer closing(t, s)
		o := opOf(t, []limiter.Limit{limiter.PerDay("a", 1000)}, limiter.Spend{Limit: "a", Take: tokens(1)})
		all, first, err := s.Shards(t.Context(), o.Bucket)
		if err != nil || len(all) < 4 || !slices.IsSorted(all) || !slices.Contains(all, first) {
			t.Fatalf("shards %v, first %d, %v", all, first, err)
		}
		if done := takes(t, s, true, o); done.Shard != first+1 {
			t.Errorf("the request was sent to shard %d, want %d", done.Shard-1, first)
		}
		o.Bucket.Entity = "other"
		if all, first, err = s.Shards(t.Context(), o.Bucket); err != nil || len(all) != 1 || all[0] != 0 || first != 0 {
			t.Errorf("a bucket that nothing was asked of: shards %v, first %d, %v", all, first, err)
		}
	})
}
