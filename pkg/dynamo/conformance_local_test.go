//go:build torture

package dynamo_test

import (
	"flag"
	"testing"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

// Every step of a random case costs round trips here; the store in memory runs more of them.
const localRapidChecks = "25"

func TestConformanceOnDynamoDBLocal(t *testing.T) {
	server := dynamotest.Start(t)
	checks := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", localRapidChecks); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := flag.Set("rapid.checks", checks); err != nil {
			t.Error(err)
		}
	}()
	storetest.Run(t, func(t *testing.T) limiter.Store {
		client, table := server.Client(t), dynamotest.TableName(t)
		if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
			t.Fatal(err)
		}
		return newStore(t, client, func(cfg *dynamo.Config) { cfg.Table = table })
	})
}
