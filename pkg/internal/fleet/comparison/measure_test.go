//go:build bench && !race

package comparison_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/comparison"
)

// TestCompare measures all modes under all scenarios, for a short time and a longer one. It puts the
// table of the longer, the chart and the changes into the documentation, unless a target is missed
// or only a part was run. make compare runs all of it; a part is run by its names:
//
//	go test -tags bench ./pkg/internal/fleet/comparison -run TestCompare/long/M -v
//	go test -tags bench ./pkg/internal/fleet/comparison -run TestCompare/changes/raise -v
func TestCompare(t *testing.T) {
	t.Run("short", func(t *testing.T) { compare(t, false) })
	var results []comparison.Result
	t.Run("long", func(t *testing.T) { results = compare(t, true) })
	var changed []comparison.Change
	t.Run("changes", func(t *testing.T) { changed = changes(t, true, 1<<10) })
	show(t, len(changed), comparison.ChangeCSV(changed))
	all, allChanges := 0, 0
	for _, sc := range scenarios() {
		all += len(modesOf(&sc))
	}
	for _, ch := range changings() {
		allChanges += len(ch.modesOf()) * len(latencies())
	}
	if t.Failed() {
		t.Fatal("a target is missed: the documentation is as it was")
	}
	if len(results) == all {
		put(t, comparison.CSV(results))
	}
	if len(changed) == allChanges {
		if err := os.WriteFile(changeCSV, []byte(comparison.ChangeCSV(changed)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// compare measures the scenarios that the test's flags name, and prints their table.
func compare(t *testing.T, long bool) (results []comparison.Result) {
	t.Helper()
	for _, sc := range scenarios() {
		for _, mode := range modesOf(&sc) {
			if mode == modeOneWrite && !long {
				continue
			}
			t.Run(sc.name+"/"+mode, func(t *testing.T) {
				r := measure(t, &sc, mode, long)
				results = append(results, r)
				report(t, &sc, r, long)
			})
		}
	}
	show(t, len(results), comparison.CSV(results))
	return results
}

// show prints figures that have rows.
func show(t *testing.T, rows int, figures string) {
	t.Helper()
	if rows == 0 {
		return
	}
	if _, err := os.Stdout.WriteString(figures + "\n"); err != nil {
		t.Fatal(err)
	}
}

// put writes the figures, puts their table in the place of the one in the page, and draws the chart.
func put(t *testing.T, figures string) {
	t.Helper()
	points, err := comparison.Points(figures)
	if err != nil {
		t.Fatal(err)
	}
	table, err := comparison.Table(figures)
	if err != nil {
		t.Fatal(err)
	}
	putTable(t, table)
	if err := os.WriteFile(scenarioCSV, []byte(figures), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(chart, []byte(comparison.Chart(points)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// putTable puts a table in the place of the one in the page with the same heading.
func putTable(t *testing.T, table string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	heading, _, _ := strings.Cut(table, "\n")
	before, rest, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("%s has no table that begins with %q", page, heading)
	}
	_, after, _ := strings.Cut(rest, "\n\n")
	if err := os.WriteFile(page, []byte(before+table+"\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
