//go:build bench && !race

package descriptor_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/benchtable"
)

// TestBenchTargets measures the promises of this package; make bench runs it.
func TestBenchTargets(t *testing.T) {
	const most = 1.5
	few, many := newMatching(t, 10), newMatching(t, 10_000)
	match := func(m matching) func(int) {
		next := 0
		return func(n int) {
			for range n {
				m.domain.Match(&m.descriptors[next%len(m.descriptors)])
				next++
			}
		}
	}
	ratio, manyNs, fewNs := benchtable.Compare(25, match(many), match(few))
	var table benchtable.Table
	table.Add(benchtable.Row{
		Name:     "matching, 10,000 rules against 10",
		Measured: fmt.Sprintf("%.2f× (%.0f ns, %.0f ns)", ratio, manyNs, fewNs),
		Target:   fmt.Sprintf("at most %.1f×", most), OK: ratio <= most,
	})
	if err := table.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if table.Failed() {
		t.Error("a target was missed")
	}
}
