package embedded_test

import (
	"context"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

func inMemory(t *testing.T) *embedded.Store {
	t.Helper()
	return closed(t, embedded.New(embedded.Config{}))
}

func withFile(t *testing.T) *embedded.Store {
	t.Helper()
	s, err := embedded.Open(t.TempDir(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return closed(t, s)
}

// closed has the test close a store.
func closed(t *testing.T, s *embedded.Store) *embedded.Store {
	t.Helper()
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) limiter.Store { return inMemory(t) })
}

func TestDurableConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) limiter.Store { return withFile(t) })
}

func TestControl(t *testing.T) {
	storetest.RunControl(t, func(t *testing.T) storetest.ControlStore { return inMemory(t) })
}

func TestDurableControl(t *testing.T) {
	storetest.RunControl(t, func(t *testing.T) storetest.ControlStore { return withFile(t) })
}

func TestExpiredEvents(t *testing.T) {
	s, err := embedded.Open(t.TempDir(), embedded.Config{AuditRetention: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	storetest.RunExpiry(t, s)
}

func TestBuckets(t *testing.T) {
	storetest.RunBuckets(t, func(t *testing.T) storetest.BucketStore { return inMemory(t) })
}

func TestDurableBuckets(t *testing.T) {
	storetest.RunBuckets(t, func(t *testing.T) storetest.BucketStore { return withFile(t) })
}

func TestUsageConformance(t *testing.T) {
	storetest.RunUsage(t, func(t *testing.T) storetest.UsageStore {
		now := func() time.Time { return time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC) }
		s, err := embedded.Open(t.TempDir(), embedded.Config{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		closed(t, s)
		return storetest.UsageStore{Usage: s, Store: s, Consume: func(t *testing.T, at time.Time, bucket limiter.BucketKey, amounts map[string]int64) {
			t.Helper()
			storetest.Consume(t, s, at, bucket, amounts)
		}}
	})
}
