package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

func newTable(tb testing.TB) *dynamofake.DB {
	tb.Helper()
	db := dynamofake.New()
	if _, err := db.CreateTable(tb.Context(), dynamo.TableInput("buckets")); err != nil {
		tb.Fatal(err)
	}
	return db
}

// namespace returns an id for each name.
func namespace(_ context.Context, name string) (string, error) {
	sum := sha256.Sum256([]byte(name))
	return "n" + hex.EncodeToString(sum[:8]), nil
}

// newEngine returns an engine on a table in memory, with long timeouts unless change says
// otherwise.
func newEngine(tb testing.TB, client dynamo.Client, change func(*engine.Config)) *engine.Engine {
	tb.Helper()
	cfg := engine.Config{StoreConfig: engine.StoreConfig{Table: "buckets", Attempt: 20 * time.Second, Budget: time.Minute}, Items: awsdb.ItemsOf(client, "buckets"), Namespace: namespace}
	if change != nil {
		change(&cfg)
	}
	e, err := engine.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// op returns an op on the bucket of an entity under one limit.
func op(tb testing.TB, entity string, l limiter.Limit, sp limiter.Spend) limiter.Op {
	tb.Helper()
	set, err := limiter.NewLimits(l)
	if err != nil {
		tb.Fatal(err)
	}
	sp.Limit = l.Name
	return limiter.Op{Bucket: limiter.BucketKey{Namespace: "default", Entity: entity, Resource: "r"}, Limits: set, Generation: 1, Spends: []limiter.Spend{sp}}
}

// tokens returns n tokens in millitokens.
func tokens(n int64) int64 { return n * limiter.Milli }
