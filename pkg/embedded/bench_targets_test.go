//go:build bench && !race

package embedded_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/benchtable"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestBenchTargets measures what this package promises; make bench runs it.
func TestBenchTargets(t *testing.T) {
	var table benchtable.Table
	for _, n := range []int{1000, 1_000_000} {
		table.Add(decisionRow(t, n))
	}
	const million, most = 1_000_000, 256
	mib := bytesOfBuckets(t, million) >> 20
	table.Add(benchtable.Row{
		Name: "memory of a million buckets", Measured: fmt.Sprintf("%d MiB", mib),
		Target: fmt.Sprintf("at most %d MiB", most), OK: mib <= most,
	})
	if err := table.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if table.Failed() {
		t.Error("a target was missed")
	}
}

// decisionRow compares a decision with the yardstick, over n random keys.
func decisionRow(t *testing.T, n int) benchtable.Row {
	const most = 3.0
	keys := keysOf(n)
	yardstick, l := newLookup(keys), benchLimiter(t)
	req := &limiter.Request{Takes: []limiter.Take{{Resource: "gpt-4", Consume: []limiter.Consumption{{Limit: "rpd", Amount: limiter.Milli}}}}}
	var d limiter.Decision
	decide := func(key string) {
		req.Takes[0].Entity = key
		if err := l.Decide(context.Background(), time.Now(), req, &d); err != nil || !d.Admitted {
			t.Fatal(err, d.Admitted)
		}
	}
	for _, key := range keys {
		decide(key)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var sum int64
	ratio, a, b := benchtable.Compare(15,
		func(count int) {
			for range count {
				decide(keys[r.IntN(n)])
			}
		},
		func(count int) {
			for range count {
				sum += yardstick.get(keys[r.IntN(n)])
			}
		})
	return benchtable.Row{
		Name:     fmt.Sprintf("decision in process, %d keys", n),
		Measured: fmt.Sprintf("%.2f× a map lookup (%.0f ns, lookup %.0f ns), %v allocations", ratio, a, b, testing.AllocsPerRun(1000, func() { decide(keys[0]) })),
		Target:   fmt.Sprintf("at most %.0f×, 0 allocations", most),
		OK:       ratio <= most,
	}
}
