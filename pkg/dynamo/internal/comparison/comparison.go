// Package comparison compares ways to decide on one bucket that several processes share,
// on DynamoDB: what a decision costs, whether too much is admitted, or too little, and
// how long callers wait. make compare measures it, in time that does not pass, and puts
// it into docs/benchmarks.md as a [Table], with a [Chart].
package comparison

import (
	"fmt"
	"strings"
	"time"
)

// Patience is how long the service waits for a decision, unless it is configured
// otherwise; then it goes by what the rule says of a store that does not answer.
const Patience = 15 * time.Millisecond

// Result is what came of one mode under the load of one scenario.
type Result struct {
	Scenario, Mode  string
	Decisions       int64
	Writes, Refused int64 // of them, those whose condition did not hold
	Span            time.Duration
	Over            int64   // millitokens that the worst window has beyond the bound
	Share           float64 // of what an ideal bucket admits
	P50, P99, P999  time.Duration
	Late            float64 // share of the calls that had no decision within Patience
}

// Cost is how many writes a decision takes.
func (r Result) Cost() float64 { return float64(r.Writes) / float64(max(r.Decisions, 1)) }

const heading = "| scenario | mode | writes a decision | writes a second | of them refused | tokens over | of the ideal | p50 | p99 | p99.9 | later than 15 ms |"

// Table returns results as a table in Markdown, a row each.
func Table(results []Result) string {
	var b strings.Builder
	b.WriteString(heading + "\n" + strings.Repeat("| --- ", strings.Count(heading, "|")-1) + "|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s | %.0f | %.0f %% | %s | %.3f | %s | %s | %s | %.1f %% |\n",
			r.Scenario, r.Mode, figures(r.Cost()), float64(r.Writes)/max(r.Span.Seconds(), 1e-9), 100*float64(r.Refused)/float64(max(r.Writes, 1)),
			strings.TrimSuffix(fmt.Sprintf("%.3f", float64(r.Over)/1000), ".000"), r.Share, millis(r.P50), millis(r.P99), millis(r.P999), 100*r.Late)
	}
	return b.String()
}

// figures writes a number with at least two figures that count.
func figures(x float64) string {
	switch {
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	case x >= 0.1:
		return fmt.Sprintf("%.3f", x)
	default:
		return fmt.Sprintf("%.4f", x)
	}
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

// Point is what a row of a table says of writes.
type Point struct {
	Scenario, Mode string
	Cost           float64 // writes a decision
}

// Parse finds the table in a page and returns its rows. Its errors say which line is
// none of a table's.
func Parse(page string) ([]Point, error) {
	_, after, found := strings.Cut(page, heading+"\n")
	if !found {
		return nil, fmt.Errorf("there is no table that begins with %q", heading)
	}
	var points []Point
	for i, line := range strings.Split(after, "\n") {
		if i == 0 { // dashes
			continue
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(line, "|")
		var p Point
		if len(cells) != strings.Count(heading, "|")+1 {
			return nil, fmt.Errorf("row %q: %d cells, want %d", line, len(cells)-2, strings.Count(heading, "|")-1)
		}
		p.Scenario, p.Mode = strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		if _, err := fmt.Sscan(cells[3], &p.Cost); err != nil || p.Cost <= 0 {
			return nil, fmt.Errorf("row %q: %q must be a number above 0", line, cells[3])
		}
		points = append(points, p)
	}
	return points, nil
}
