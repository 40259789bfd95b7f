package limiter_test

import (
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Windows of one kind cover all times, one after the other, and a time is in its own window.
func TestUsageWindowsCoverTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-60_000_000_000, 250_000_000_000).Draw(t, "at"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).
			In(time.FixedZone("", rapid.IntRange(-12*3600, 14*3600).Draw(t, "zone")))
		for _, w := range limiter.UsageWindows() {
			start := w.Start(at)
			end := w.End(start)
			if start.After(at) || !end.After(at) || !w.Start(start).Equal(start) || !w.Start(end).Equal(end) || start.Location() != time.UTC {
				t.Fatalf("%v of %v is %v to %v", w, at, start, end)
			}
			if parsed, err := limiter.ParseUsageWindow(w.String()); err != nil || parsed != w {
				t.Fatalf("%v reads as %v, %v", w, parsed, err)
			}
		}
	})
}

func TestUsageFilterRefuses(t *testing.T) {
	at := func(year int) time.Time { return time.Date(year, 3, 1, 0, 0, 0, 0, time.UTC) }
	for name, tt := range map[string]struct {
		f  limiter.UsageFilter
		ok bool
	}{
		"all":              {limiter.UsageFilter{}, true},
		"an empty time":    {limiter.UsageFilter{From: at(2026), To: at(2026)}, true},
		"no such window":   {limiter.UsageFilter{Window: 3}, false},
		"ends before":      {limiter.UsageFilter{From: at(2026), To: at(2025)}, false},
		"a year too early": {limiter.UsageFilter{From: at(0)}, false},
		"a year too late":  {limiter.UsageFilter{To: at(10_000)}, false},
	} {
		err := tt.f.Check()
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	f := limiter.UsageFilter{From: at(2025), To: at(2026)}
	for year, want := range map[int]bool{2024: false, 2025: true, 2026: false} {
		if got := f.Selects(at(year)); got != want {
			t.Errorf("%d: got %t, want %t", year, got, want)
		}
	}
	if _, err := limiter.ParseUsageWindow("week"); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("week: error %v", err)
	}
}

func TestUsageSummary(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 11, 22, hour, 0, 0, 0, time.UTC) }
	var s limiter.UsageSummary
	for _, u := range []limiter.UsageSnapshot{
		{Start: at(5), Limits: []limiter.LimitUsage{{"tpm", 10}}},
		{Start: at(3), Limits: []limiter.LimitUsage{{"rpm", 1}, {"tpm", 5}}},
		{Start: at(9), Limits: []limiter.LimitUsage{{"rpm", -9}}},
		{Resource: "another", Start: at(9)}, // the same window
	} {
		s.Add(&u)
	}
	want := limiter.UsageSummary{Snapshots: 4, Windows: 3, First: at(3), Last: at(9), Limits: []limiter.LimitSummary{{"rpm", -8}, {"tpm", 15}}}
	if diff := cmp.Diff(want, s, cmpopts.IgnoreUnexported(limiter.UsageSummary{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.Average(s.Limits[0]); got != -3 {
		t.Errorf("average of -8 in 3: %d", got)
	}
	if got := new(limiter.UsageSummary).Average(limiter.LimitSummary{}); got != 0 {
		t.Errorf("average of nothing: %d", got)
	}
}

// The average is the nearest whole number, and sums stop at the ends of the numbers.
func TestUsageArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		sum := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		for _, end := range []int64{math.MinInt64, math.MaxInt64} {
			if !sum.IsInt64() && sum.Sign() == big.NewInt(end).Sign() {
				sum.SetInt64(end)
			}
		}
		if got := limiter.SaturatingSum(a, b); got != sum.Int64() {
			t.Fatalf("%d + %d = %d", a, b, got)
		}
		n := rapid.Int64Range(1, math.MaxInt64).Draw(t, "n")
		s := limiter.UsageSummary{Windows: n}
		off := new(big.Int).Mul(big.NewInt(s.Average(limiter.LimitSummary{Total: a})), big.NewInt(n))
		off.Sub(off, big.NewInt(a)).Mul(off, big.NewInt(2))
		if off.CmpAbs(big.NewInt(n)) > 0 {
			t.Fatalf("the average of %d in %d is %d", a, n, s.Average(limiter.LimitSummary{Total: a}))
		}
	})
}
