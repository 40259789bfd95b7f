package engine_test

import (
	"flag"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

// localRapidChecks is how often each property is checked against DynamoDB Local, which
// takes milliseconds for a call.
const localRapidChecks = "15"

func TestConformanceOnDynamoDBLocal(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
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
		in := dynamo.TableInput(dynamotest.TableName(t))
		in.StreamSpecification = nil // more than half of DynamoDB Local's work, and the store reads none
		if _, err := client.CreateTable(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		records, err := dynamo.New(dynamo.Config{Client: client, Table: *in.TableName, Attempt: 20 * time.Second, Budget: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return joined{records, newEngine(t, client, func(cfg *engine.Config) { cfg.Table = *in.TableName })}
	})
}
