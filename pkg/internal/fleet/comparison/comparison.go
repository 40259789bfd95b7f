// Package comparison compares ways to decide on buckets that several processes share, on
// DynamoDB. Callers use them as users do: through the limiter, with its deadline and its
// policy. It measures the cost of a decision and the calls without one in time. It measures
// the tokens that are let through beyond the bound, and the time that callers wait. make
// compare measures it, in time that does not pass, and puts it into docs: each figure into a
// file, a [Table] of leases beside lease: none into docs/benchmarks.md, and a [Chart].
package comparison

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Result is the outcome of one mode under one load of one scenario.
type Result struct {
	Scenario, Mode  string
	Load            time.Duration // how long calls come
	Decisions       int64
	Writes, Refused int64 // Refused: of them, those whose condition did not hold
	Hottest         int64 // of them, those to the item with the most
	Span            time.Duration
	Policy          int64   // calls that on_unavailable decided
	Late            int64   // calls that were decided late
	LateTokens      int64   // millitokens that they were admitted
	Over            int64   // millitokens that the worst window has beyond the bound, however the calls in it were admitted
	Share           float64 // of the admissions of an ideal bucket
	Needless        int64   // calls that were denied though the tokens were there
	P50, P99        time.Duration
}

// Cost is how many writes a decision takes.
func (r Result) Cost() float64 { return r.Part(r.Writes) }

// Part is a number of calls as a part of all.
func (r Result) Part(n int64) float64 { return float64(n) / float64(max(r.Decisions, 1)) }

// PerSecond is how many writes a second the hottest item takes.
func (r Result) PerSecond() float64 { return float64(r.Hottest) / max(r.Span.Seconds(), 1e-9) }

// RefusedPart is the part of the writes that was refused.
func (r Result) RefusedPart() float64 { return float64(r.Refused) / float64(max(r.Writes, 1)) }

const (
	columns = "scenario,mode,writes a decision,writes a second,refused %,by policy %,late %,tokens over,of the ideal,needless %,p50 ms,p99 ms"
	heading = "| scenario | writes a decision: none | auto | writes a second: none | auto | late %: none | auto | p99 ms: none | auto |"
	// The modes whose figures stand side by side in the tables.
	withoutLeases = "lease: none"
	withLeases    = "lease: auto"
)

// CSV returns results as comma-separated values under a heading, a row each.
func CSV(results []Result) string {
	var b strings.Builder
	b.WriteString(columns + "\n")
	for _, r := range results {
		fmt.Fprintf(&b, "%s,%s,%s,%.0f,%.0f,%s,%s,%s,%.3f,%.1f,%s,%s\n",
			r.Scenario, r.Mode, figures(r.Cost()), r.PerSecond(), 100*r.RefusedPart(), percent(r.Part(r.Policy)), percent(r.Part(r.Late)),
			strings.TrimSuffix(fmt.Sprintf("%.3f", float64(r.Over)/1000), ".000"), r.Share, 100*r.Part(r.Needless), millis(r.P50), millis(r.P99))
	}
	return b.String()
}

// read returns the rows of a text that [CSV] wrote, and of [ChangeCSV] with its columns.
func read(text, columns string) ([][]string, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the figures: %w", err)
	}
	if len(rows) == 0 || strings.Join(rows[0], ",") != columns {
		return nil, fmt.Errorf("the figures do not begin with %q", columns)
	}
	return rows[1:], nil
}

// Table returns a table in Markdown of the rows that [CSV] wrote, with the most important figures of the modes with
// and without leases. A row has one scenario.
func Table(text string) (string, error) {
	rows, err := read(text, columns)
	if err != nil {
		return "", err
	}
	var t table
	for _, r := range rows {
		t.add(r[0], r[1], []string{r[2], r[3], r[6], r[11]})
	}
	return t.write(heading), nil
}

// table collects the figures of scenarios in two modes.
type table struct {
	names []string
	cells map[string][]string // of each figure that of [withoutLeases], then that of [withLeases]
}

// add puts figures into the row of a scenario. Those of another mode are in the files only.
func (t *table) add(name, mode string, figures []string) {
	column := slices.Index([]string{withoutLeases, withLeases}, mode)
	if column < 0 {
		return
	}
	if t.cells[name] == nil {
		if t.cells == nil {
			t.cells = make(map[string][]string)
		}
		t.names = append(t.names, name)
		t.cells[name] = make([]string, 2*len(figures))
	}
	for i, figure := range figures {
		t.cells[name][2*i+column] = figure
	}
}

// write returns the table in Markdown.
func (t *table) write(heading string) string {
	var b strings.Builder
	b.WriteString(head(heading))
	for _, name := range t.names {
		fmt.Fprintf(&b, "| %s | %s |\n", name, strings.Join(t.cells[name], " | "))
	}
	return b.String()
}

// head returns the first two lines of a table in Markdown.
func head(heading string) string {
	return heading + "\n" + strings.Repeat("| --- ", strings.Count(heading, "|")-1) + "|\n"
}

// figures writes a number with at least two figures that count.
func figures(x float64) string {
	switch {
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	case x >= 0.1:
		return fmt.Sprintf("%.3f", x)
	case x >= 0.01:
		return fmt.Sprintf("%.4f", x)
	default:
		return fmt.Sprintf("%.5f", x)
	}
}

// percent writes a part in percent, with decimals where it is small; none is 0.
func percent(part float64) string {
	switch {
	case part == 0:
		return "0"
	case part < 0.01:
		return fmt.Sprintf("%.3f", 100*part)
	default:
		return fmt.Sprintf("%.1f", 100*part)
	}
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1000) }

// Point is the part of a row about writes.
type Point struct {
	Scenario, Mode string
	Cost           float64 // writes a decision
}

// Points returns the points of the rows that [CSV] wrote. Its errors say which row is none.
func Points(text string) ([]Point, error) {
	rows, err := read(text, columns)
	if err != nil {
		return nil, err
	}
	points := make([]Point, 0, len(rows))
	for _, r := range rows {
		p := Point{Scenario: r[0], Mode: r[1]}
		if _, err := fmt.Sscan(r[2], &p.Cost); err != nil || p.Cost <= 0 {
			return nil, fmt.Errorf("row %q: %q must be a number above 0", strings.Join(r, ","), r[2])
		}
		points = append(points, p)
	}
	return points, nil
}
