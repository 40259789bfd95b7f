//go:build bench && !race

package embedded_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/benchtable"
)

// TestBenchTargets measures the performance that this package promises; make bench runs it.
func TestBenchTargets(t *testing.T) {
	var table benchtable.Table
	// Before other stores are there, which drop buckets meanwhile.
	inMemory := bytesOfBuckets(t, embedded.New(embedded.Config{}), million, 1)
	withAFile := bytesOfBuckets(t, openDurable(t), million, 4096)
	for _, n := range []int{1000, 1_000_000} {
		keys := keysOf(n)
		memory := benchLimiter(t)
		touchEach(t, memory, keys, 1)
		table.Add(decisionRow(t, fmt.Sprintf("decision in process, %d keys", n), memory, keys, func() string { return "" }))
		durable := newDurable(t, keys, 4096)
		table.Add(decisionRow(t, fmt.Sprintf("the same with a data file, %d keys", n), durable.limiter, keys, durable.commits()))
		table.Add(throughputRow(t, durable, memory, keys))
		table.Add(benchtable.Row{
			Name:     fmt.Sprintf("first decisions for %d keys", n),
			Measured: fmt.Sprintf("%.0f/s, %d commits", float64(n)/durable.touched.Seconds(), durable.touchedBy),
			Target:   "reported", OK: true,
		})
	}
	table.Add(memoryRow(t, "memory of a million buckets", 256, inMemory))
	table.Add(memoryRow(t, "the same with a data file", 320, withAFile))
	if err := table.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if table.Failed() {
		t.Error("a target was missed")
	}
}

// decisionRow compares a decision with the yardstick, over random keys.
func decisionRow(t *testing.T, name string, l *limiter.Limiter, keys []string, also func() string) benchtable.Row {
	t.Helper()
	const most = 3.0
	yardstick := newLookup(keys)
	r := rand.New(rand.NewPCG(1, 2))
	var sum int64
	ratio, a, b := benchtable.Compare(15,
		func(count int) { decideBy(t, l, keys, 1, count) },
		func(count int) {
			for range count {
				sum += yardstick.get(keys[r.IntN(len(keys))])
			}
		})
	said := also()
	return benchtable.Row{
		Name:     name,
		Measured: fmt.Sprintf("%.2f× a map lookup (%.0f ns, lookup %.0f ns)%s", ratio, a, b, said),
		Target:   fmt.Sprintf("at most %.0f×", most),
		OK:       ratio <= most,
	}
}

// throughputRow compares decisions of several callers with and without a file.
func throughputRow(t *testing.T, d *durable, memory *limiter.Limiter, keys []string) benchtable.Row {
	t.Helper()
	const least, callers = 0.9, 4
	said := d.commits()
	ratio, a, b := benchtable.Compare(15,
		func(count int) { decideBy(t, d.limiter, keys, callers, count) },
		func(count int) { decideBy(t, memory, keys, callers, count) })
	return benchtable.Row{
		Name:     fmt.Sprintf("throughput with a data file, %d callers, %d keys", callers, len(keys)),
		Measured: fmt.Sprintf("%.2f× the one in memory (%.0f/s against %.0f/s)%s", 1/ratio, 1e9/a, 1e9/b, said()),
		Target:   fmt.Sprintf("at least %.1f×", least),
		OK:       1/ratio >= least,
	}
}

// commits begins to count commits.
func (d *durable) commits() func() string {
	before, begin := d.store.Stats().Commits, time.Now()
	return func() string {
		return fmt.Sprintf(", %.0f commits/s", float64(d.store.Stats().Commits-before)/time.Since(begin).Seconds())
	}
}

func memoryRow(t *testing.T, name string, most, bytes uint64) benchtable.Row {
	t.Helper()
	mib := bytes >> 20
	return benchtable.Row{
		Name: name, Measured: fmt.Sprintf("%d MiB", mib),
		Target: fmt.Sprintf("at most %d MiB", most), OK: mib <= most,
	}
}
