//go:build torture

package dynamo_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

// Minutes: DynamoDB Local writes about two thousand times a second. The same
// suite runs in seconds on the fake, which is held against DynamoDB Local itself.
func TestConformanceOnDynamoDBLocal(t *testing.T) {
	server := dynamotest.Start(t)
	storetest.Run(t, func(t *testing.T) limiter.Store {
		client, table := server.Client(t), dynamotest.TableName(t)
		if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
			t.Fatal(err)
		}
		return newStore(t, client, func(cfg *dynamo.Config) { cfg.Table = table })
	})
}
