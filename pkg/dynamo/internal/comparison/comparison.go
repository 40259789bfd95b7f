// Package comparison compares ways to decide on buckets that several processes share, on
// DynamoDB, as users meet them: through the limiter, with its deadline and its policy.
// It measures the cost of a decision, the calls without one in time, the tokens that are
// let through beyond the bound, and the time that callers wait. make compare measures it,
// in time that does not pass, and puts it into docs/benchmarks.md as a [Table], with a
// [Chart].
package comparison

import (
	"fmt"
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
	Share           float64 // of what an ideal bucket admits
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

const heading = "| scenario | mode | writes a decision | writes a second | refused | by policy | late | tokens over | of the ideal | needless | p50 | p99 |"

// Table returns results as a table in Markdown, a row each.
func Table(results []Result) string {
	var b strings.Builder
	b.WriteString(head(heading))
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s | %.0f | %.0f %% | %s | %s | %s | %.3f | %.1f %% | %s | %s |\n",
			r.Scenario, r.Mode, figures(r.Cost()), r.PerSecond(), 100*r.RefusedPart(), percent(r.Part(r.Policy)), percent(r.Part(r.Late)),
			strings.TrimSuffix(fmt.Sprintf("%.3f", float64(r.Over)/1000), ".000"), r.Share, 100*r.Part(r.Needless), millis(r.P50), millis(r.P99))
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

// percent writes a part, with decimals where it is small; none is 0.
func percent(part float64) string {
	switch {
	case part == 0:
		return "0"
	case part < 0.01:
		return fmt.Sprintf("%.3f %%", 100*part)
	default:
		return fmt.Sprintf("%.1f %%", 100*part)
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
