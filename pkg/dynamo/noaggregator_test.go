package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// halfway is the network of a replica that crashes when it is to make the second half of a
// split.
type halfway struct {
	http.RoundTripper

	dead atomic.Bool
}

func (h *halfway) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutItem") && bytes.Contains(body, []byte(schema.AttrShardCount)) {
		h.dead.Store(true)
	}
	if h.dead.Load() {
		return nil, errors.New("the replica is dead")
	}
	return h.RoundTripper.RoundTrip(r)
}

// bucketItems returns the items of buckets in a table.
func bucketItems(t *testing.T, client *dynamodb.Client, table string) (items []map[string]types.AttributeValue) {
	t.Helper()
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range out.Items {
		if strings.Contains(item["PK"].(*types.AttributeValueMemberS).Value, "/BUCKET#") {
			items = append(items, item)
		}
	}
	return items
}

// splitHalfway has three replicas of a table split a bucket, and die before its second half is there. It
// returns the bucket, and the tokens that were admitted.
func splitHalfway(t *testing.T, server *dynamotest.Server, table string) (of limiter.Op, admitted int64) {
	t.Helper()
	network := &halfway{RoundTripper: http.DefaultTransport}
	firsts := make([]*dynamo.Store, 3)
	for i := range firsts {
		firsts[i] = newStore(t, dynamotest.NewClient(server.URL, network), func(cfg *dynamo.Config) {
			cfg.Table, cfg.ShardUnits, cfg.Attempt, cfg.Budget = table, 5, 200*time.Millisecond, time.Second
		})
	}
	o := op(t, "e", limiter.Custom("l", 1000, 100, time.Second), limiter.Spend{Take: tokens(1)})
	var load sync.WaitGroup
	var got atomic.Int64
	for _, s := range firsts {
		load.Go(func() {
			for began := time.Now(); !network.dead.Load() && time.Since(began) < 30*time.Second; {
				if takeOf(t, s, o, 1) {
					got.Add(1)
				}
			}
		})
	}
	load.Wait()
	items := bucketItems(t, server.Client(t), table)
	if len(items) != 1 || items[0][schema.AttrMoving] == nil {
		t.Fatalf("%d items, want one whose second half is missing", len(items))
	}
	return o, got.Load()
}

// takeOf takes tokens of the limit l of a bucket, and reports whether it got them.
func takeOf(t *testing.T, s *dynamo.Store, of limiter.Op, n int64) bool {
	t.Helper()
	of.Spends = []limiter.Spend{{Limit: "l", Take: tokens(n)}}
	ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer stop()
	admitted, err := s.Take(ctx, time.Now(), []limiter.Op{of})
	return err == nil && admitted
}

// Without an aggregator a bucket is split by the replica that uses it. Another replica makes the half that
// the first one owed when it crashed. Each half has the number of shards in its own item, written with its
// level, so nothing has to be passed on to it. The refill comes with the writes of decisions.
func TestShardsAndRefillNeedNoAggregator(t *testing.T) {
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	client := server.Client(t)
	if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	o, _ := splitHalfway(t, server, table)
	second := newStore(t, client, func(cfg *dynamo.Config) { cfg.Table = table })
	defer closing(t, second)
	var items []map[string]types.AttributeValue
	waitFor(t, func() bool {
		takeOf(t, second, o, 1)
		items = bucketItems(t, client, table)
		return len(items) == 2 && items[0][schema.AttrMoving] == nil && items[1][schema.AttrMoving] == nil
	})
	for _, item := range items {
		count, level := item[schema.AttrShardCount].(*types.AttributeValueMemberN), item[schema.AttrLevel].(*types.AttributeValueMemberN)
		if count.Value != "2" || level.Value != "2" {
			t.Errorf("an item of two has shard_count %s and level %s", count.Value, level.Value)
		}
	}
	for taken := 0; takeOf(t, second, o, 200); taken++ {
		if taken > 20 {
			t.Fatal("a bucket of 1,000 tokens is not emptied")
		}
	}
	waitFor(t, func() bool { return takeOf(t, second, o, 200) }) // after the refill of 2 s at most
}

// An aggregator makes the half that is owed while no replica uses the bucket. Several at once, beside a
// replica, make it once, and no token more.
func TestAnAggregatorFinishesASplit(t *testing.T) {
	began, server, f := time.Now(), dynamotest.Start(t), newFed(t)
	o, admitted := splitHalfway(t, server, f.table)
	before := bucketItems(t, server.Client(t), f.table)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		running.Go(func() { f.aggregate(ctx, t, name, nil) })
	}
	var items []map[string]types.AttributeValue
	waitFor(t, func() bool {
		items = bucketItems(t, server.Client(t), f.table)
		return len(items) == 2 && items[0][schema.AttrMoving] == nil && items[1][schema.AttrMoving] == nil
	})
	stop()
	running.Wait()
	pk := before[0]["PK"].(*types.AttributeValueMemberS).Value
	for range 2 { // late calls
		if done, err := f.stream.FinishSplit(t.Context(), pk); done || err != nil {
			t.Errorf("a split that is finished: %t, %v", done, err)
		}
	}
	second := newStore(t, server.Client(t), func(cfg *dynamo.Config) { cfg.Table = f.table })
	defer closing(t, second)
	for takeOf(t, second, o, 10) {
		admitted += 10
	}
	if most := 1000 + 100*int64(time.Since(began)/time.Second+1); admitted < 900 || admitted > most {
		t.Errorf("%d tokens are admitted of a bucket of 1,000, want 900 to %d", admitted, most)
	}
}
