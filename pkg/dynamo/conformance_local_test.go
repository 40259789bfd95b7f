//go:build !race

package dynamo_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func TestConformanceOnDynamoDBLocal(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	rapidChecks(t, localCases)
	storetest.Run(t, func(t *testing.T) limiter.Store { return onLocal(t, client) })
}

func TestBucketsOnDynamoDBLocal(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	storetest.RunBuckets(t, func(t *testing.T) storetest.BucketStore { return onLocal(t, client) })
}

// onLocal returns a store on a new table of DynamoDB Local.
func onLocal(t *testing.T, client dynamo.Client) *dynamo.Store {
	t.Helper()
	in := dynamo.TableInput(dynamotest.TableName(t))
	in.StreamSpecification = nil // more than half of DynamoDB Local's work, and the store reads none
	if _, err := client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := dynamo.CheckTable(t.Context(), client, *in.TableName); err != nil {
		t.Fatal(err)
	}
	return newStore(t, client, func(cfg *dynamo.Config) { cfg.Table = *in.TableName })
}

func TestReportsOnDynamoDBLocal(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	storetest.RunReports(t, func(t *testing.T, now func() time.Time) storetest.ReportStore {
		t.Helper()
		table := dynamotest.TableName(t)
		if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
			t.Fatal(err)
		}
		return newStore(t, client, func(cfg *dynamo.Config) { cfg.Table, cfg.Now = table, now })
	})
}
