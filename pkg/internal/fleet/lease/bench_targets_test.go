//go:build bench && !race

package lease_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/benchtable"
)

// TestBenchTargets measures the promises of this package; make bench runs it.
func TestBenchTargets(t *testing.T) {
	const most = 200 // ns
	var table benchtable.Table
	h, now, draws := held(t, 1)
	n := 0
	run := func(times int) {
		for range times {
			if n++; n%10 == 0 {
				now++
			}
			if !decide(h, now, draws) {
				t.Fatal("not admitted")
			}
		}
	}
	_, ns, _ := benchtable.Compare(5, run, run)
	allocs := testing.AllocsPerRun(1000, func() { run(1) })
	table.Add(benchtable.Row{
		Name:     "decision from a lease, one limit",
		Measured: fmt.Sprintf("%.1f ns, %v allocations", ns, allocs),
		Target:   fmt.Sprintf("below %d ns, 0 allocations", most), OK: ns < most && allocs == 0,
	})
	if err := table.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if table.Failed() {
		t.Error("a target was missed")
	}
}
