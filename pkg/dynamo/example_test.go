package dynamo_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// Two replicas on one table. A program makes its client with dynamo.NewClient;
// here DynamoDB is memory.
func Example() {
	ctx, now := context.Background(), time.UnixMilli(1_700_000_000_000)
	client := dynamofake.New()
	if err := dynamo.CreateTable(ctx, client, "ratelimit"); err != nil {
		fmt.Println(err)
		return
	}
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 2))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, replica := range []string{"a", "b"} {
		store, err := dynamo.New(client, dynamo.Config{Table: "ratelimit"})
		if err != nil {
			fmt.Println(err)
			return
		}
		ops := []limiter.Op{{
			Bucket: limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: "key/k-123", Resource: "gpt-4"},
			Limits: limits,
			Spends: []limiter.Spend{{Limit: "rpm", Take: limiter.Milli}},
		}}
		for range 2 {
			admitted, err := store.Take(ctx, now, ops)
			fmt.Println("replica", replica, "admitted:", admitted, "left:", ops[0].Spends[0].Bucket.Tokens, err)
		}
		if err := store.Close(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// replica a admitted: true left: 1000 <nil>
	// replica a admitted: true left: 0 <nil>
	// replica b admitted: false left: 0 <nil>
	// replica b admitted: false left: 0 <nil>
}
