package dynamo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// metered asks DynamoDB for the consumption of each write.
type metered struct{ *dynamodb.Client }

func (m metered) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	return m.Client.UpdateItem(ctx, in, opts...)
}

// A steady decision is one UpdateItem of one write unit, the indexes included, with
// four limits and ids of 32 bytes.
func TestADecisionIsOneWriteUnit(t *testing.T) {
	server := dynamotest.Start(t)
	recorder := dynamotest.NewRecorder(nil)
	client, table := metered{dynamotest.NewClient(server.URL, apart{recorder})}, dynamotest.TableName(t)
	if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	stores := make([]*dynamo.Store, 12) // enough for most slots
	for i := range stores {
		stores[i] = newStore(t, client, func(cfg *dynamo.Config) { cfg.Table = table })
	}
	defer closing(t, stores...)
	o := limiter.Op{
		Bucket: limiter.BucketKey{Namespace: "default", Entity: "key/" + strings.Repeat("k", 28), Resource: strings.Repeat("m", 32)},
		Limits: limitsOf(t, limiter.PerSecond("rps", 100), limiter.PerMinute("rpm", 1000), limiter.PerMinute("tpm", 400_000), limiter.PerDay("tpd", 10_000_000)), Generation: 1,
		Spends: []limiter.Spend{{Limit: "rps", Take: tokens(1)}, {Limit: "rpm", Take: tokens(1)}, {Limit: "tpm", Take: tokens(1234)}, {Limit: "tpd", Take: tokens(1234)}},
	}
	for i, s := range stores {
		mustTake(t, s, after(float64(i)), true, o)
		recorder.Take()
		for j := range 3 {
			mustTake(t, s, after(float64(i)+float64(j)*0.3), true, o)
			calls := recorder.Take()
			if len(calls) != 1 || calls[0].Op != "UpdateItem" || len(calls[0].Consumed) != 1 {
				t.Fatalf("replica %d: %+v, want one UpdateItem", i, calls)
			}
			if got := calls[0].Consumed[0]; got.CapacityUnits != 1 || len(got.GlobalSecondaryIndexes) > 0 {
				t.Errorf("replica %d consumed %s, want 1 unit and none of an index", i, fmt.Sprintf("%+v", got))
			}
		}
	}
}

// DynamoDB Local dates its replies, so that a fleet on it corrects its clocks too.
func TestDynamoDBLocalCorrectsTheClock(t *testing.T) {
	server := dynamotest.Start(t)
	clock := dynamo.NewClock(func() time.Time { return time.Now().Add(-time.Hour) }, 0).WithMaxOffset(2 * time.Hour)
	client, err := dynamo.NewClient(t.Context(), dynamo.ClientConfig{Endpoint: server.URL, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	table := dynamotest.TableName(t)
	if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	if got := clock.State(); !got.Trusted || (got.Offset-time.Hour).Abs() > dynamo.DefaultClockTolerance {
		t.Errorf("got %+v, want an offset of an hour", got)
	}
	s := newStore(t, client, func(cfg *dynamo.Config) { cfg.Table, cfg.Clock = table, clock })
	defer closing(t, s)
	o := op(t, "e", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)})
	mustTake(t, s, time.Now().Add(-time.Hour), true, o)
	if got := time.Since(time.UnixMilli(o.Spends[0].Bucket.Refilled)) - time.Hour; got.Abs() > dynamo.DefaultClockTolerance {
		t.Errorf("the answer has a time that is %v off the caller's own", got)
	}
}
