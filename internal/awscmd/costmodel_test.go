package awscmd

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

func quiet(calls, keys float64) costTraffic {
	return costTraffic{Calls: calls, Keys: keys, Levels: 1, WriteUnits: 1, Replicas: 3, Namespaces: 1, Leases: true}
}

// The model is within a factor of 1.5 of each measurement in docs/scenarios.csv. It leaves out buckets that are
// busy now and then (E, H) and those too small for leases (C, D). Without leases it also leaves out a
// demand that moves (K) and a slow store (M).
func TestModelFollowsMeasurements(t *testing.T) {
	measured, err := os.ReadFile("../../docs/scenarios.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		scenarios, mode string
		calls           float64
		replicas, over  float64
	}{
		{"A", "auto", 10_000, 3, 0},
		{"G", "auto", 1000, 3, 0},
		{"K", "auto", 9000, 3, 0},
		{"J", "auto", 40_000, 10, 0},
		{"BM", "auto", 10_000, 3, 1},
		{"N", "auto", 2000, 3, 1},
		{"O", "auto", 8000, 3, 1},
		{"P", "auto", 3000, 3, 1},
		{"I", "auto", 40_000, 10, 1},
		{"L", "auto", 20_000, 10, 1},
		{"AB", "none", 10_000, 3, 0},
		{"G", "none", 1000, 3, 0},
		{"O", "none", 8000, 3, 0},
		{"N", "none", 2000, 3, 0},
		{"P", "none", 3000, 3, 0},
		{"J", "none", 40_000, 10, 0},
		{"I", "none", 40_000, 10, 0},
		{"L", "none", 20_000, 10, 0},
	} {
		for _, scenario := range test.scenarios {
			want := measuredWrites(t, measured, string(scenario), test.mode)
			traffic := quiet(test.calls, 1)
			traffic.HotKeys, traffic.HotShare = 1, 1
			traffic.Replicas, traffic.OverLimit, traffic.Leases = test.replicas, test.over, test.mode == "auto"
			if got := estimateCost(traffic, knownPrices()).Writes; got < want/1.5 || got > 1.5*want {
				t.Errorf("%c, %s: %g writes a second, measured %g", scenario, test.mode, got, want)
			}
		}
	}
}

// measuredWrites returns the writes a second in the row of a scenario and a mode.
func measuredWrites(t *testing.T, measured []byte, scenario, mode string) float64 {
	t.Helper()
	row := regexp.MustCompile(`(?m)^` + scenario + `,lease: ` + mode + `,[\d.]+,(\d+),`).FindSubmatch(measured)
	if row == nil {
		t.Fatalf("there is no row of %s, %s", scenario, mode)
	}
	writes, err := strconv.ParseFloat(string(row[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return writes
}

// Quiet buckets cost a write for each level, as a store counts them.
func TestQuietBucketsAreCounted(t *testing.T) {
	db := dynamofake.New()
	if err := dynamo.CreateTable(t.Context(), db, "limits"); err != nil {
		t.Fatal(err)
	}
	store, err := dynamo.New(db, dynamo.Config{Table: "limits", Leases: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(limiter.Config{Store: store, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 10))
	if err != nil {
		t.Fatal(err)
	}
	const keys = 50
	for i := range keys {
		request := &limiter.Request{}
		for _, kind := range []string{"key", "team"} {
			request.Takes = append(request.Takes, limiter.Take{
				Entity: fmt.Sprintf("%s/%d", kind, i), Resource: "r", Limits: limits, Consume: []limiter.Consumption{{Limit: "rpm", Amount: limiter.Milli}},
			})
		}
		var d limiter.Decision
		if err := l.Decide(t.Context(), time.Now(), request, &d); err != nil || !d.Admitted {
			t.Fatalf("%v, %+v", err, d)
		}
	}
	traffic := quiet(keys, keys)
	traffic.Levels = 2
	if got, want := float64(store.Stats().Writes), estimateCost(traffic, knownPrices()).Writes; got != want {
		t.Errorf("the store wrote %g times, the model says %g", got, want)
	}
	if err := store.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A replica tells of itself every 15 s, by at most 4 write units, and an aggregator by one.
func TestReports(t *testing.T) {
	traffic := quiet(0, 1)
	traffic.Replicas, traffic.UsageWindows = 6, 0
	e := estimateCost(traffic, costPrices{Write: 1})
	traffic.UsageWindows = 1
	if with := estimateCost(traffic, costPrices{Write: 1}); math.Abs(with.ReportUnits-e.ReportUnits-1.0/15) > 1e-9 {
		t.Errorf("%g units a second with an aggregator, and %g without", with.ReportUnits, e.ReportUnits)
	}
	if want := 6 * 4.0 / 15; math.Abs(e.ReportUnits-want) > 1e-9 || math.Abs(e.ReportDollars-want*730*3600/1e6) > 1e-9 {
		t.Errorf("%g units a second for %g dollars, want %g", e.ReportUnits, e.ReportDollars, want)
	}
}

func TestDollars(t *testing.T) {
	traffic := quiet(1000, 1_000_000)
	e := estimateCost(traffic, costPrices{Write: 1, Read: 0, Storage: 0.25, Recovery: 0.25})
	if want := 1000 * 730 * 3600 / 1e6; math.Abs(e.WriteDollars-want) > 1e-6 || e.WritesPerCall != 1 {
		t.Errorf("writes: %g dollars, want %g; %g a call", e.WriteDollars, want, e.WritesPerCall)
	}
	if e.StorageDollars != 0.5 || math.Abs(e.Dollars-e.WriteDollars-e.ReportDollars-0.5) > 1e-9 {
		t.Errorf("a GB: %g dollars of %g", e.StorageDollars, e.Dollars)
	}
	hot := traffic
	hot.HotKeys, hot.HotShare = 10, 1
	if h := estimateCost(hot, knownPrices()); h.Writes != 10*3*1.5 || h.HottestItem != 4.5 || h.OneWriteDollars < h.Dollars {
		t.Errorf("hot keys: %+v", h)
	}
	settled := traffic
	settled.Settled = 0.5
	if s := estimateCost(settled, knownPrices()); s.Writes != 2000 {
		t.Errorf("half of the calls settle: %g writes, want a mark and a write more for each", s.Writes)
	}
}

func TestCheck(t *testing.T) {
	if err := quiet(1, 1).Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*costTraffic){
		"no keys":      func(t *costTraffic) { t.Keys = 0 },
		"share":        func(t *costTraffic) { t.HotShare = 1.1 },
		"over limit":   func(t *costTraffic) { t.OverLimit = -0.1 },
		"more hot":     func(t *costTraffic) { t.HotKeys = 2 },
		"no hot keys":  func(t *costTraffic) { t.HotShare = 0.5 },
		"no number":    func(t *costTraffic) { t.Calls = math.NaN() },
		"no replica":   func(t *costTraffic) { t.Replicas = 0 },
		"levels":       func(t *costTraffic) { t.Levels = 9 },
		"negative":     func(t *costTraffic) { t.Calls = -1 },
		"settlements":  func(t *costTraffic) { t.Settled = 2 },
		"write units":  func(t *costTraffic) { t.WriteUnits = 0 },
		"no namespace": func(t *costTraffic) { t.Namespaces = 0 },
	} {
		traffic := quiet(1, 1)
		change(&traffic)
		if traffic.Check() == nil {
			t.Errorf("%s: %+v is not refused", name, traffic)
		}
	}
}

func Example_estimate() {
	e := estimateCost(costTraffic{Calls: 1000, Keys: 100_000, HotKeys: 10, HotShare: 0.9, Levels: 1, WriteUnits: 1, Replicas: 3, Namespaces: 1, Leases: true}, knownPrices())
	fmt.Printf("%.0f writes a second, %.2f a call\n", e.Writes, e.WritesPerCall)
	// Output: 145 writes a second, 0.14 a call
}

// An aggregator writes each window of a busy bucket once in 10 seconds, and of a quiet one at most once for each call.
func TestUsageIsBilled(t *testing.T) {
	for name, tt := range map[string]struct {
		calls, keys, windows, want float64
	}{
		"none":           {10_000, 1, 0, 0},
		"a busy bucket":  {10_000, 1, 3, 0.3},
		"busy buckets":   {10_000, 100, 1, 10},
		"quiet buckets":  {10, 1000, 3, 30},
		"without a call": {0, 1000, 3, 0},
	} {
		traffic := quiet(tt.calls, tt.keys)
		traffic.UsageWindows = tt.windows
		e := estimateCost(traffic, costPrices{Write: 1})
		if math.Abs(e.UsageWrites-tt.want) > 1e-9 || math.Abs(e.Dollars-e.WriteDollars-e.ReadDollars-e.StorageDollars-e.UsageDollars-e.ReportDollars) > 1e-9 {
			t.Errorf("%s: %+v, want %g writes of usage", name, e, tt.want)
		}
	}
}

// A replica reads each item that it leases at most twice a second. Quiet buckets are not leased.
func TestReadsOfLeases(t *testing.T) {
	for name, tt := range map[string]struct {
		calls, keys, levels, want float64
	}{
		"a busy bucket":             {10_000, 1, 1, 6},
		"busy buckets with parents": {10_000, 10, 2, 120},
		"quiet buckets":             {1000, 1000, 1, 0},
	} {
		traffic := quiet(tt.calls, tt.keys)
		traffic.Replicas, traffic.Levels, traffic.Leases = 3, tt.levels, false
		without := estimateCost(traffic, knownPrices())
		traffic.Leases = true
		if got := estimateCost(traffic, knownPrices()).Reads - without.Reads; math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %g read units a second, want %g", name, got, tt.want)
		}
	}
}
