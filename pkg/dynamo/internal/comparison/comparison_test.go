package comparison_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/comparison"
)

// Where make compare puts what it measures.
const (
	page  = "../../../../docs/benchmarks.md"
	chart = "../../../../docs/leases.svg"
)

// faults returns what a result of a mode lacks that it must have.
func faults(sc *scenario, r comparison.Result) (faults []string) {
	add := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s, %s: ", r.Scenario, r.Mode)+fmt.Sprintf(format, args...))
	}
	if r.Mode == modeOneWrite {
		return nil
	}
	if r.Over > 0 {
		add("%d millitokens over in a window", r.Over)
	}
	if r.Mode != modeLeases {
		return faults
	}
	if most := sc.demands.mostWrites; most > 0 && r.Cost() > most {
		add("%.5f writes a decision, want at most %.3f", r.Cost(), most)
	}
	if r.Share < sc.demands.leastShare {
		add("%.4f of the ideal are admitted, want at least %.3f", r.Share, sc.demands.leastShare)
	}
	return faults
}

// Nothing is admitted too much, and leases cost little, under those loads that are
// short enough for a test.
func TestScenarios(t *testing.T) {
	for _, sc := range scenarios() {
		if !sc.short {
			continue
		}
		for _, mode := range []string{modeGroupCommit, modeLeases} {
			t.Run(sc.name+"/"+mode, func(t *testing.T) {
				for _, fault := range faults(&sc, measure(t, sc, mode)) {
					t.Error(fault)
				}
			})
		}
	}
}

// The documentation has what was measured of every scenario and mode, and the chart
// shows just that.
func TestThePageHasAllScenarios(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	points, err := comparison.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	want := make([]string, 0, len(points))
	got := make([]string, 0, len(points))
	for _, p := range points {
		got = append(got, p.Scenario+", "+p.Mode)
	}
	for _, sc := range scenarios() {
		for _, mode := range modes() {
			want = append(want, sc.name+", "+mode)
		}
		if line := fmt.Sprintf("- **%s** %s.", sc.name, sc.text); !strings.Contains(string(text), line) {
			t.Errorf("%s lacks the line %q", page, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows of %s (-want +got):\n%s", page, diff)
	}
	drawn, err := os.ReadFile(chart)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(comparison.Chart(points), string(drawn)); diff != "" {
		t.Errorf("%s is not of the table in %s (-want +got):\n%s", chart, page, diff)
	}
}

func TestTable(t *testing.T) {
	results := []comparison.Result{
		{Scenario: "A", Mode: "m", Decisions: 10_000, Writes: 17, Refused: 8, Span: 2 * time.Second, Share: 1, P50: 3500 * time.Microsecond, P99: time.Second},
		{Scenario: "B", Mode: "m", Decisions: 100, Writes: 250, Span: time.Second, Over: 1500, Share: 0.98765, Late: 0.25},
	}
	table := comparison.Table(results)
	want := []string{
		"| A | m | 0.0017 | 8 | 47 % | 0 | 1.000 | 3.5 ms | 1000.0 ms | 0.0 ms | 0.0 % |",
		"| B | m | 2.50 | 250 | 0 % | 1.500 | 0.988 | 0.0 ms | 0.0 ms | 0.0 ms | 25.0 % |",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(table), "\n")[2:]); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	got, err := comparison.Parse("# Page\n\n" + table + "\nand more | text\n")
	if err != nil {
		t.Fatal(err)
	}
	points := []comparison.Point{{Scenario: "A", Mode: "m", Cost: 0.0017}, {Scenario: "B", Mode: "m", Cost: 2.5}}
	if diff := cmp.Diff(points, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	table := comparison.Table(nil)
	for name, page := range map[string]string{
		"no table":    "# Page\n",
		"a short row": table + "| A | m | 1 |\n",
		"no number":   table + "| A | m | x | 8 | 47 % | 0 | 1.000 | 3.5 ms | 1 ms | 0 ms | 0 % |\n",
		"not above 0": table + "| A | m | 0.0000 | 8 | 47 % | 0 | 1.000 | 3.5 ms | 1 ms | 0 ms | 0 % |\n",
	} {
		if got, err := comparison.Parse(page); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}
