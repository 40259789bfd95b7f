package dynamo_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// watched is a table that knows the keys of its bucket items.
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
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for pk := range w.keys {
		out, err := w.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("buckets"), Key: map[string]types.AttributeValue{
			"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: "#STATE"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if out.Item != nil && out.Item["rt"] == nil {
			n++
		}
	}
	return n
}

// A bucket that is written too often is split by its load, gives what its limit says
// across that, and is one again after a quiet time.
func TestLoadSplitsABucket(t *testing.T) {
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
		// Nobody is denied who is owed tokens, in whatever shards they are.
		time.Sleep(2 * time.Second)
		for ask(stores[0], 1) {
		}
		if got := admitted.Load(); got > bound() || got < bound()-bound()/100 {
			t.Errorf("%d tokens were admitted, want %d or a few less", got, bound())
		}
		time.Sleep(6 * time.Second)
		if !ask(stores[1], 1000) || ask(stores[3], 1) {
			t.Error("a request for the whole capacity was denied, or left something")
		}
		time.Sleep(6 * time.Minute) // five halvings, each after a quiet time
		if n := db.live(t); n != 1 {
			t.Errorf("%d shards after a quiet time, want 1", n)
		}
		if !ask(stores[2], 1000) {
			t.Error("the bucket that is one again does not hold its capacity")
		}
		if ask(stores[3], 1) {
			t.Error("the bucket that is one again holds more than its capacity")
		}
	})
}
