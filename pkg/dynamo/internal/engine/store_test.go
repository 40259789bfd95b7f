package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func newTable(t *testing.T) *dynamofake.DB {
	t.Helper()
	db := dynamofake.New()
	if _, err := db.CreateTable(t.Context(), dynamo.TableInput("buckets")); err != nil {
		t.Fatal(err)
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
func newEngine(t *testing.T, client dynamo.Client, change func(*engine.Config)) *engine.Engine {
	t.Helper()
	cfg := engine.Config{Client: client, Table: "buckets", Namespace: namespace, Attempt: 20 * time.Second, Budget: time.Minute}
	if change != nil {
		change(&cfg)
	}
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// op returns an op on the bucket of an entity under one limit.
func op(t *testing.T, entity string, l limiter.Limit, sp limiter.Spend) limiter.Op {
	t.Helper()
	set, err := limiter.NewLimits(l)
	if err != nil {
		t.Fatal(err)
	}
	sp.Limit = l.Name
	return limiter.Op{Bucket: limiter.BucketKey{Namespace: "default", Entity: entity, Resource: "r"}, Limits: set, Generation: 1, Spends: []limiter.Spend{sp}}
}

// tokens returns n tokens in millitokens.
func tokens(n int64) int64 { return n * limiter.Milli }
