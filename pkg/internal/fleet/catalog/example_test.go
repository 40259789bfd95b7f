package catalog_test

import (
	"context"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// Limits that are stored by one replica are read by another, and each change has its
// audit event.
func Example() {
	ctx, client := context.Background(), dynamofake.New()
	if err := catalog.CreateTable(ctx, client, "ratelimit"); err != nil {
		fmt.Println(err)
		return
	}
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 100))
	if err != nil {
		fmt.Println(err)
		return
	}
	writer := catalog.New(catalog.Config{Items: awsdb.ItemsOf(client, "ratelimit"), Table: "ratelimit"})
	reader := catalog.New(catalog.Config{Items: awsdb.ItemsOf(client, "ratelimit"), Table: "ratelimit"})
	ref := limiter.ResourceLimitsRef("gpt-4")
	fmt.Println(writer.PutLimits(ctx, "default", ref, limiter.Record{Limits: limits}))

	records := make([]limiter.Record, 1)
	generation, err := reader.Read(ctx, "default", []limiter.Ref{ref}, records)
	fmt.Println(records[0].Limits.At(0), "at generation", generation, err)
	events, err := reader.ListEvents(ctx, "default", limiter.AuditOf(ref), limiter.Page{})
	for _, event := range events.Items {
		fmt.Println(event.Action, err)
	}
	fmt.Println(writer.Close(ctx), reader.Close(ctx))
	// Output:
	// <nil>
	// 100/minute at generation 4294967296 <nil>
	// limits.put <nil>
	// <nil> <nil>
}
