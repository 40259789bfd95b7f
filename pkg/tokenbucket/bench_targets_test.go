//go:build bench && !race

package tokenbucket_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
	"github.com/ratelimit/ratelimit/test/kit/benchtable"
)

// TestBenchTargets measures the performance that this package promises; make bench runs it.
func TestBenchTargets(t *testing.T) {
	const most = 100 // "tens of nanoseconds"
	var table benchtable.Table
	for _, bm := range benchmarks {
		bucket, now := tokenbucket.Full(bm.params, start), start
		consume := func(n int) {
			for range n {
				now += bm.step
				bucket, _ = bucket.TryConsume(bm.params, 1000, now)
			}
		}
		_, ns, _ := benchtable.Compare(5, consume, consume)
		allocs := testing.AllocsPerRun(1000, func() { consume(1) })
		table.Add(benchtable.Row{
			Name:     "token bucket arithmetic, " + bm.name,
			Measured: fmt.Sprintf("%.1f ns, %v allocations", ns, allocs),
			Target:   "tens of ns, 0 allocations", OK: ns < most && allocs == 0,
		})
	}
	if err := table.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if table.Failed() {
		t.Error("a target was missed")
	}
}
