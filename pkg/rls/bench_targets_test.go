//go:build !race

package rls_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/benchtable"
)

// TestBenchTargets measures the service beside a handler that does nothing, in
// alternating rounds; make bench runs it. Ratios are of neighbouring rounds, and
// the middle one counts.
func TestBenchTargets(t *testing.T) {
	if os.Getenv("RATELIMIT_BENCH") == "" {
		t.Skip("measures; run make bench")
	}
	const (
		rounds        = 21
		round         = 500 * time.Millisecond
		leastRate     = 0.95
		mostP99       = 1.2
		connectionsOf = loadConnections
	)
	service, yardstick := newLoads(t)
	service.run(t, round)
	yardstick.run(t, round)
	var rates, p99s, serviceRates, yardstickRates []float64
	var serviceP99s, yardstickP99s []time.Duration
	for i := range rounds {
		first, second := service, yardstick
		if i%2 == 1 {
			first, second = yardstick, service
		}
		rate, p99 := first.run(t, round)
		rate2, p992 := second.run(t, round)
		if i%2 == 1 {
			rate, rate2, p99, p992 = rate2, rate, p992, p99
		}
		rates, p99s = append(rates, rate/rate2), append(p99s, p99.Seconds()/p992.Seconds())
		serviceRates, yardstickRates = append(serviceRates, rate), append(yardstickRates, rate2)
		serviceP99s, yardstickP99s = append(serviceP99s, p99), append(yardstickP99s, p992)
	}
	rate, p99 := median(rates), median(p99s)
	var table benchtable.Table
	table.Add(benchtable.Row{
		Name:     fmt.Sprintf("RLS over gRPC, throughput, %d callers on %d connections", loadWorkers, connectionsOf),
		Measured: fmt.Sprintf("%.2f× a no-op handler (%.0f/s, no-op %.0f/s)", rate, median(serviceRates), median(yardstickRates)),
		Target:   fmt.Sprintf("at least %.2f×", leastRate),
		OK:       rate >= leastRate,
	})
	table.Add(benchtable.Row{
		Name:     "RLS over gRPC, p99",
		Measured: fmt.Sprintf("%.2f× a no-op handler (%v, no-op %v)", p99, median(serviceP99s).Round(time.Microsecond), median(yardstickP99s).Round(time.Microsecond)),
		Target:   fmt.Sprintf("at most %.1f×", mostP99),
		OK:       p99 <= mostP99,
	})
	if err := table.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if table.Failed() {
		t.Error("a target was missed")
	}
}

func median[T float64 | time.Duration](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
