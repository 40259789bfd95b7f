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

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// halfway is the network of a replica that dies when it is to make the second half of a split.
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

// Without an aggregator a bucket is split by the replica that uses it, and another replica makes the half that the
// first one owed when it died. Each half has the number of shards in its own item, written with its level, so that
// nothing is to be passed on to it. The refill comes with the writes of decisions.
func TestShardsAndRefillNeedNoAggregator(t *testing.T) {
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	client := server.Client(t)
	if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	network := &halfway{RoundTripper: http.DefaultTransport}
	firsts := make([]*dynamo.Store, 3)
	for i := range firsts {
		firsts[i] = newStore(t, dynamotest.NewClient(server.URL, network), func(cfg *dynamo.Config) {
			cfg.Table, cfg.ShardUnits, cfg.Attempt, cfg.Budget = table, 5, 200*time.Millisecond, time.Second
		})
	}
	o := op(t, "e", limiter.Custom("l", 1000, 100, time.Second), limiter.Spend{Take: tokens(1)})
	take := func(s *dynamo.Store, n int64) bool {
		o := o
		o.Spends = []limiter.Spend{{Limit: "l", Take: tokens(n)}}
		ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer stop()
		admitted, err := s.Take(ctx, time.Now(), []limiter.Op{o})
		return err == nil && admitted
	}
	var load sync.WaitGroup
	for _, s := range firsts {
		load.Go(func() {
			for began := time.Now(); !network.dead.Load() && time.Since(began) < 30*time.Second; {
				take(s, 1)
			}
		})
	}
	load.Wait()
	items := bucketItems(t, client, table)
	if len(items) != 1 || items[0][schema.AttrMoving] == nil {
		t.Fatalf("%d items, want one whose second half is missing", len(items))
	}
	second := newStore(t, client, func(cfg *dynamo.Config) { cfg.Table = table })
	defer closing(t, second)
	waitFor(t, func() bool {
		take(second, 1)
		items = bucketItems(t, client, table)
		return len(items) == 2 && items[0][schema.AttrMoving] == nil && items[1][schema.AttrMoving] == nil
	})
	for _, item := range items {
		count, level := item[schema.AttrShardCount].(*types.AttributeValueMemberN), item[schema.AttrLevel].(*types.AttributeValueMemberN)
		if count.Value != "2" || level.Value != "2" {
			t.Errorf("an item of two has shard_count %s and level %s", count.Value, level.Value)
		}
	}
	for taken := 0; take(second, 200); taken++ {
		if taken > 20 {
			t.Fatal("a bucket of 1,000 tokens is not emptied")
		}
	}
	waitFor(t, func() bool { return take(second, 200) }) // after the refill of 2 s at most
}
