package embedded

import (
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A bucket with shortened names is the same bucket after a restart.
func TestLongNamesOutliveTheProcess(t *testing.T) {
	dir, long := t.TempDir(), strings.Repeat("x", limiter.MaxShownName+1)
	limits, err := limiter.NewLimits(limiter.PerHour("rpm", 10))
	if err != nil {
		t.Fatal(err)
	}
	for run, want := range []int64{9, 8} {
		s, err := Open(dir, Config{Now: func() time.Time { return t0 }})
		if err != nil {
			t.Fatal(err)
		}
		ops := []limiter.Op{{
			Bucket: limiter.BucketKey{Namespace: "default", Entity: long + "e", Resource: long + "r"},
			Limits: limits, Spends: []limiter.Spend{{Limit: "rpm", Take: limiter.Milli}},
		}}
		if ok, err := s.Take(t.Context(), t0, ops); !ok || err != nil {
			t.Fatalf("run %d: %t, %v", run, ok, err)
		}
		if got := ops[0].Spends[0].Bucket.Tokens / limiter.Milli; got != want {
			t.Errorf("run %d leaves %d tokens, want %d", run, got, want)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
