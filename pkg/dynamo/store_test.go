package dynamo_test

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

func newStore(t *testing.T, client dynamo.Client, change func(*dynamo.Config)) *dynamo.Store {
	t.Helper()
	cfg := dynamo.Config{Table: "buckets", Attempt: 20 * time.Second, Budget: time.Minute, PurgeWait: -1}
	if change != nil {
		change(&cfg)
	}
	s, err := dynamo.New(client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rapidChecks sets how many random cases the test runs.
func rapidChecks(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	if err := checks.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := checks.Set(before); err != nil {
			t.Error(err)
		}
	})
}

func newTable(tb testing.TB) *dynamofake.DB {
	tb.Helper()
	db := dynamofake.New()
	if _, err := db.CreateTable(tb.Context(), dynamo.TableInput("buckets")); err != nil {
		tb.Fatal(err)
	}
	return db
}

func TestConformanceInMemory(t *testing.T) {
	rapidChecks(t, randomCases)
	storetest.Run(t, func(t *testing.T) limiter.Store { return newStore(t, newTable(t), nil) })
}

func TestControlInMemory(t *testing.T) {
	storetest.RunControl(t, func(t *testing.T) storetest.ControlStore { return newStore(t, newTable(t), nil) })
}

func TestControlWithLeases(t *testing.T) {
	storetest.RunControl(t, func(t *testing.T) storetest.ControlStore { return newStore(t, newTable(t), withLeases) })
}

func TestBucketsInMemory(t *testing.T) {
	storetest.RunBuckets(t, func(t *testing.T) storetest.BucketStore { return newStore(t, newTable(t), nil) })
}

func TestBucketsWithLeases(t *testing.T) {
	storetest.RunBuckets(t, func(t *testing.T) storetest.BucketStore { return newStore(t, newTable(t), withLeases) })
}
