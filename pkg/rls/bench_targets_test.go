//go:build bench && !race && unix

package rls_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/benchtable"
)

// TestBenchTargets measures the service beside a no-op handler, in alternating rounds; make bench
// runs it. Ratios are of neighbouring rounds, and the median counts.
func TestBenchTargets(t *testing.T) {
	const leastRate, mostP99 = 0.95, 1.2
	service, yardstick := newLoads(t)
	service.round(t)
	yardstick.round(t)
	var rate, noopRate, rateRatio, p99, noopP99, p99Ratio measures
	for i := range rate {
		if i%2 == 0 {
			rate[i], p99[i] = service.round(t)
			noopRate[i], noopP99[i] = yardstick.round(t)
		} else {
			noopRate[i], noopP99[i] = yardstick.round(t)
			rate[i], p99[i] = service.round(t)
		}
		rateRatio[i], p99Ratio[i] = rate[i]/noopRate[i], p99[i]/noopP99[i]
	}
	var table benchtable.Table
	table.Add(benchtable.Row{
		Name:     fmt.Sprintf("RLS over gRPC, throughput, %d callers", loadWorkers),
		Measured: fmt.Sprintf("%.2f× a no-op handler (%.0f/s, no-op %.0f/s)", median(rateRatio), median(rate), median(noopRate)),
		Target:   fmt.Sprintf("at least %.2f×", leastRate),
		OK:       median(rateRatio) >= leastRate,
	})
	table.Add(benchtable.Row{
		Name:     fmt.Sprintf("RLS over gRPC, p99, %d callers", loadWorkers),
		Measured: fmt.Sprintf("%.2f× a no-op handler (%.2f ms, no-op %.2f ms)", median(p99Ratio), median(p99)*1e3, median(noopP99)*1e3),
		Target:   fmt.Sprintf("at most %.1f×", mostP99),
		OK:       median(p99Ratio) <= mostP99,
	})
	table.Add(observedCost(t, service))
	if err := table.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if table.Failed() {
		t.Error("a target was missed")
	}
}

// measures has one number for each round.
type measures [21]float64

func median(all measures) float64 {
	slices.Sort(all[:])
	return all[len(all)/2]
}
