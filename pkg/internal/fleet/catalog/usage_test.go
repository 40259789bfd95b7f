package catalog

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func TestUsage(t *testing.T) {
	storetest.RunUsage(t, func(t *testing.T) storetest.UsageStore { return withUsage(t, dynamofake.New()) })
}

// TestUsageOnDynamoDB: the same with the indexes of DynamoDB Local.
func TestUsageOnDynamoDB(t *testing.T) {
	storetest.RunUsage(t, func(t *testing.T) storetest.UsageStore { return withUsage(t, dynamotest.Start(t).Client(t)) })
}

// withUsage returns a catalog, and writes of snapshots as an aggregator makes them.
func withUsage(t *testing.T, client awsdb.Client) storetest.UsageStore {
	t.Helper()
	c := newTestCatalog(t, client)
	sequence := 0
	return storetest.UsageStore{Usage: c, Consume: func(t *testing.T, at time.Time, bucket limiter.BucketKey, amounts map[string]int64) {
		t.Helper()
		amounts = maps.Clone(amounts)
		maps.DeleteFunc(amounts, func(limit string, _ int64) bool { return bucket.Uncounted(limit) }) // the aggregator leaves it out
		if len(amounts) == 0 {
			return
		}
		ns, err := c.NamespaceID(t.Context(), bucket.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		sequence++
		names := aggregator.Names{}
		for full, name := range map[*string]string{&names.Entity: bucket.Entity, &names.Resource: bucket.Resource} {
			if schema.IsHashed(name) {
				*full = name
			}
		}
		of := aggregator.Bucket{Namespace: ns, Entity: schema.EscapeName(bucket.Entity), Resource: schema.EscapeName(bucket.Resource)}
		position := aggregator.Sequence(strconv.Itoa(sequence))
		for _, w := range limiter.UsageWindows() {
			change, _ := schema.NewUsageChange(&aggregator.Change{
				Snapshot: aggregator.Snapshot{Bucket: of, Window: w, Start: w.Start(at)},
				Names:    names, Used: amounts, Events: 1, Shard: "s", First: position, Last: position,
			})
			if _, err := c.table.items.Write(t.Context(), change.Write()); err != nil {
				t.Fatal(err)
			}
		}
	}}
}
