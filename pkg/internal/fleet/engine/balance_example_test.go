package engine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// A bucket that is used up is topped up by two tokens, once for one ticket.
func Example() {
	ctx, now, client := context.Background(), time.Unix(1_760_000_000, 0), dynamofake.New()
	if err := catalog.CreateTable(ctx, client, "ratelimit"); err != nil {
		fmt.Println(err)
		return
	}
	records := catalog.New(catalog.Config{Items: awsdb.ItemsOf(client, "ratelimit"), Table: "ratelimit"})
	buckets, err := engine.New(engine.Config{StoreConfig: engine.StoreConfig{Table: "ratelimit"}, Items: awsdb.ItemsOf(client, "ratelimit"), Namespace: records.NamespaceID})
	if err != nil {
		fmt.Println(err)
		return
	}
	operator := engine.NewBalances(engine.BalancesConfig{Items: awsdb.ItemsOf(client, "ratelimit"), Table: "ratelimit", Buckets: catalog.NewBuckets(records), Engine: func() engine.Observer { return buckets }})

	limits, err := limiter.NewLimits(limiter.PerDay("rpd", 10))
	if err != nil {
		fmt.Println(err)
		return
	}
	bucket := limiter.BucketKey{Namespace: "default", Entity: "key/1", Resource: "gpt-4"}
	spends := []limiter.Spend{{Limit: "rpd", Take: 10 * limiter.Milli}}
	fmt.Println(buckets.Take(ctx, now, []limiter.Op{{Bucket: bucket, Limits: limits, Spends: spends}}))
	for range 2 {
		done, err := operator.AdjustBucket(ctx, now, limiter.Adjustment{Bucket: bucket, Kind: limiter.AdjustTopUp, Tokens: 2 * limiter.Milli, Once: "ticket 4711"})
		fmt.Println("repeated:", done.Repeated, err)
	}
	page, err := operator.ListBuckets(ctx, now, "default", limiter.BucketFilter{Resource: "gpt-4"}, limiter.Page{})
	for _, b := range page.Items {
		fmt.Println(b.Key.Entity, b.Limits[0].Limit.Name, b.Limits[0].Tokens, err)
	}
	fmt.Println(buckets.Close(ctx), records.Close(ctx))
	// Output:
	// true <nil>
	// repeated: false <nil>
	// repeated: true <nil>
	// key/1 rpd 2000 <nil>
	// <nil> <nil>
}
