package embedded

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Changes of balances are no usage, in the hour they are made or later.
func TestAdjustmentsAreNoUsage(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 59, 0, 0, time.UTC)
	s := openTest(t, t.TempDir(), Config{Now: func() time.Time { return now }})
	op := opOf("e", limitsOf(t, limiter.PerDay("l", 100)), 40)
	mustTake(t, s, now, true, op)
	for i, a := range []limiter.Adjustment{
		{}, {Kind: limiter.AdjustTakeOut, Tokens: 30_000}, {Kind: limiter.AdjustTopUp, Tokens: 10_000}, {Kind: limiter.AdjustSet, Tokens: 1}, {Kind: limiter.AdjustSet, Tokens: 100_000},
	} {
		a.Bucket = op.Bucket
		if out, err := s.AdjustBucket(t.Context(), now.Add(time.Duration(i)*time.Minute), a); err != nil || !out.Found {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	mustTake(t, s, now.Add(5*time.Minute), true, op)
	for _, w := range []struct {
		window limiter.UsageWindow
		at     time.Time
		want   int64
	}{
		{limiter.UsageHour, now, 40_000},
		{limiter.UsageHour, now.Add(time.Hour), 40_000},
		{limiter.UsageDay, now, 80_000},
		{limiter.UsageMonth, now, 80_000},
	} {
		got := usageOf(t, s, op.Bucket.Namespace, "e", op.Bucket.Resource, w.window, w.at)
		if diff := cmp.Diff(map[string]int64{"l": w.want}, got); diff != "" {
			t.Errorf("%v at %v (-want +got):\n%s", w.window, w.at, diff)
		}
	}
}

// A crash after an adjustment loses of it what a block holds, and no more.
func TestAdjustmentsOutliveACrash(t *testing.T) {
	l := newLife(t)
	go l.disk.run()
	op := opOf("e", limitsOf(t, limiter.PerDay("l", 1000)), 1000)
	mustTake(t, l.store, l.now, true, op)
	if _, err := l.store.AdjustBucket(t.Context(), l.now, limiter.Adjustment{Bucket: op.Bucket}); err != nil {
		t.Fatal(err)
	}
	l.disk.close()
	l.kill(0)
	go l.disk.run()
	out, err := l.store.AdjustBucket(t.Context(), l.now, limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp})
	if err != nil || out.Found && out.Before.Limits[0].Tokens < 900_000 {
		t.Errorf("after a crash: %+v, %v; want nearly 1000 tokens, or no bucket", out, err)
	}
	l.disk.close()
}
