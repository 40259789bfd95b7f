package comparison

import (
	"fmt"
	"strings"
	"time"
)

// Change is the outcome of a change of a bucket under load, in one mode and at one latency.
type Change struct {
	Scenario, Mode string
	Latency        time.Duration // of a message there and back: this, to twice as long
	Force          time.Duration // until the new limits were in force; 0 = there are none
	Took           time.Duration // of a reset, or of a replica that stops; 0 = there is none
	Exact          time.Duration // the longest time from the first try of an exact write until it landed
	Late           float64       // part of the calls after the change that were decided late
	Share          float64       // of what an ideal bucket admits after it
	Ended          int64         // leases of living replicas that ended without a return
	Missing        int64         // millitokens that the bucket lacks, and nothing explains
}

const changeHeading = "| change | mode | round trip | in force | reset, stop | exact write | late | of the ideal | leases lost | tokens missing |"

// ChangeTable returns results as a table in Markdown, a row each.
func ChangeTable(results []Change) string {
	var b strings.Builder
	b.WriteString(head(changeHeading))
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %d to %d ms | %s | %s | %s | %s | %.3f | %d | %.1f |\n",
			r.Scenario, r.Mode, r.Latency.Milliseconds(), 2*r.Latency.Milliseconds(), since(r.Force), since(r.Took), since(r.Exact), percent(r.Late), r.Share, r.Ended, float64(r.Missing)/1000)
	}
	return b.String()
}

// since writes a time, "" for none.
func since(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}
