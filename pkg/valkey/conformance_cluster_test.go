package valkey_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// The promises of a store hold where its table is spread over the primaries of a cluster.
func TestConformanceInACluster(t *testing.T) {
	c := valkeytest.StartCluster(t)
	rapidChecks(t, randomCases)
	open := func(t *testing.T, change func(*valkey.Config)) *valkey.Store {
		t.Helper()
		return onServer(t, c.Servers[0], change)
	}
	leasing := func(cfg *valkey.Config) { cfg.Leases = true }
	t.Run("store", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) limiter.Store { return open(t, leasing) })
	})
	t.Run("control", func(t *testing.T) {
		storetest.RunControl(t, func(t *testing.T) storetest.ControlStore { return open(t, nil) })
	})
	t.Run("buckets", func(t *testing.T) {
		storetest.RunBuckets(t, func(t *testing.T) storetest.BucketStore { return open(t, leasing) })
	})
	t.Run("expiry", func(t *testing.T) {
		storetest.RunExpiry(t, open(t, func(cfg *valkey.Config) { cfg.AuditRetention = time.Nanosecond }))
	})
	t.Run("usage", func(t *testing.T) {
		storetest.RunUsage(t, func(t *testing.T) storetest.UsageStore {
			s := open(t, nil)
			return storetest.UsageStore{Store: s, Usage: s, Consume: func(t *testing.T, at time.Time, bucket limiter.BucketKey, amounts map[string]int64) {
				t.Helper()
				storetest.Consume(t, s, at, bucket, amounts)
			}}
		})
	})
}
