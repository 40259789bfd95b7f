package comparison_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/comparison"
)

// Where make compare puts its results.
const (
	page        = "../../../../docs/benchmarks.md"
	chart       = "../../../../docs/leases.svg"
	scenarioCSV = "../../../../docs/scenarios.csv"
	changeCSV   = "../../../../docs/changes.csv"
)

// The bound is kept, and targets are met, under those loads that are short enough for a
// test.
func TestScenarios(t *testing.T) {
	tested := 0
	for _, sc := range scenarios() {
		if !sc.tested {
			continue
		}
		tested++
		if tested > testedScenarios {
			break
		}
		for _, mode := range []string{modeGroupCommit, modeLeases} {
			t.Run(sc.name+"/"+mode, func(t *testing.T) {
				r := measure(t, &sc, mode, false)
				report(t, &sc, r, false)
			})
		}
	}
}

// report fails the test for figures out of bounds, and logs the targets that are missed.
func report(t *testing.T, sc *scenario, r comparison.Result, long bool) {
	t.Helper()
	for _, fault := range faults(sc, r, bounds(sc, r.Mode, long)) {
		t.Error(fault)
	}
	for _, fault := range faults(sc, r, targetOf(sc, r.Mode, long)) {
		t.Log("a target is missed: " + fault)
	}
}

func TestFaults(t *testing.T) {
	sc := scenarios()[0]
	good := comparison.Result{Scenario: "A", Mode: modeLeases, Decisions: 100_000, Writes: 100, Hottest: 100, Span: time.Second, Late: 90, LateTokens: 9000, Over: 9000, Share: 0.991}
	if got := faults(&sc, good, targetOf(&sc, good.Mode, true)); len(got) > 0 {
		t.Errorf("a good result: %q", got)
	}
	for name, spoil := range map[string]func(*comparison.Result){
		"policy":    func(r *comparison.Result) { r.Policy = 1 },
		"over":      func(r *comparison.Result) { r.Over++ },
		"writes":    func(r *comparison.Result) { r.Writes = 201 },
		"hottest":   func(r *comparison.Result) { r.Mode, r.Hottest = modeGroupCommit, 1001 },
		"refused":   func(r *comparison.Result) { r.Mode, r.Refused = modeGroupCommit, 11 },
		"undecided": func(r *comparison.Result) { r.Late = 101 },
		"share":     func(r *comparison.Result) { r.Share = 0.9899 },
	} {
		bad := good
		spoil(&bad)
		if got := faults(&sc, bad, targetOf(&sc, bad.Mode, true)); len(got) != 1 {
			t.Errorf("%s: %q, want one fault", name, got)
		}
	}
}

// The documentation has the results of every scenario and mode, and the chart shows
// just these.
func TestThePageHasAllScenarios(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	measured, err := os.ReadFile(scenarioCSV)
	if err != nil {
		t.Fatal(err)
	}
	points, err := comparison.Points(string(measured))
	if err != nil {
		t.Fatal(err)
	}
	if table, err := comparison.Table(string(measured)); err != nil || !strings.Contains(string(text), table) {
		t.Errorf("the table in %s is not of %s, which gives\n%s%v", page, scenarioCSV, table, err)
	}
	want := make([]string, 0, len(points))
	got := make([]string, 0, len(points))
	for _, p := range points {
		got = append(got, p.Scenario+", "+p.Mode)
	}
	for _, sc := range scenarios() {
		for _, mode := range modesOf(&sc) {
			want = append(want, sc.name+", "+mode)
		}
		if line := fmt.Sprintf("- **%s** %s.", sc.name, sc.text); !strings.Contains(string(text), line) {
			t.Errorf("%s lacks the line %q", page, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows of %s (-want +got):\n%s", scenarioCSV, diff)
	}
	for row := range strings.Lines(string(measured)) {
		if cells := strings.Split(row, ","); strings.HasPrefix(cells[1], "lease: ") && (cells[5] != "0" || cells[7] != "0") {
			t.Errorf("%s says that no call is left to on_unavailable and no token is over, but got %s", page, row)
		}
	}
	drawn, err := os.ReadFile(chart)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(comparison.Chart(points), string(drawn)); diff != "" {
		t.Errorf("%s is not of %s (-want +got):\n%s", chart, scenarioCSV, diff)
	}
}

func TestCSV(t *testing.T) {
	results := []comparison.Result{
		{Scenario: "A", Mode: "m", Decisions: 10_000, Writes: 17, Refused: 8, Hottest: 16, Span: 2 * time.Second, Share: 1, P50: 3500 * time.Microsecond, P99: time.Second, Late: 12},
		{Scenario: "B", Mode: "m", Decisions: 100, Writes: 250, Hottest: 250, Span: time.Second, Over: 1500, Share: 0.98765, Policy: 25, Needless: 1},
	}
	text := comparison.CSV(results)
	want := []string{
		"A,m,0.00170,8,47,0,0.120,0,1.000,0.0,3.5,1000.0",
		"B,m,2.50,250,0,25.0,0,1.500,0.988,1.0,0.0,0.0",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(text), "\n")[1:]); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	got, err := comparison.Points(text)
	if err != nil {
		t.Fatal(err)
	}
	points := []comparison.Point{{Scenario: "A", Mode: "m", Cost: 0.0017}, {Scenario: "B", Mode: "m", Cost: 2.5}}
	if diff := cmp.Diff(points, got); diff != "" {
		t.Errorf("Points (-want +got):\n%s", diff)
	}
}

// A row of the table has a scenario, with its two modes side by side.
func TestTable(t *testing.T) {
	text := comparison.CSV([]comparison.Result{
		{Scenario: "A", Mode: modeOneWrite, Decisions: 10_000, Writes: 10_000, Hottest: 10_000, Span: time.Second, P99: time.Second},
		{Scenario: "A", Mode: modeGroupCommit, Decisions: 10_000, Writes: 170, Hottest: 160, Span: 2 * time.Second, P99: 12 * time.Millisecond, Late: 12},
		{Scenario: "A", Mode: modeLeases, Decisions: 10_000, Writes: 17, Hottest: 16, Span: 2 * time.Second},
		{Scenario: "B", Mode: modeLeases, Decisions: 100, Writes: 250, Hottest: 250, Span: time.Second, Late: 1},
	})
	table, err := comparison.Table(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"| A | 0.0170 | 0.00170 | 80 | 8 | 0.120 | 0 | 12.0 | 0.0 |",
		"| B |  | 2.50 |  | 250 |  | 1.0 |  | 0.0 |",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(table), "\n")[2:]); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if table, err := comparison.Table("A,m,1\n"); err == nil {
		t.Errorf("without a heading: got %q, want an error", table)
	}
}

func TestPointsRefuse(t *testing.T) {
	begin := comparison.CSV(nil)
	for name, text := range map[string]string{
		"no rows":     "",
		"no heading":  "A,m,1\n",
		"a short row": begin + "A,m,1\n",
		"no number":   begin + "A,m,x,8,47,0,0,0,1.000,0,1,0\n",
		"not above 0": begin + "A,m,0.0000,8,47,0,0,0,1.000,0,1,0\n",
	} {
		if got, err := comparison.Points(text); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}
