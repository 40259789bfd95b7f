package comparison

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Change is the outcome of a change of a bucket under load, in one mode and at one latency.
type Change struct {
	Scenario, Mode string
	Latency        time.Duration // of a message there and back: this, to twice as long
	Force          time.Duration // until the new limits were in force; 0 = there are none
	Took           time.Duration // of a reset, or of a replica that stops; 0 = there is none
	Exact          time.Duration // the longest time from the first try of an exact write until it was applied
	Late           float64       // part of the calls after the change that were decided late
	Share          float64       // of the admissions of an ideal bucket after it
	Ended          int64         // leases of living replicas that ended without a return
	Missing        int64         // millitokens that the bucket lacks, and nothing explains
}

const changeColumns = "change,mode,round trip from ms,in force s,reset or stop s,exact write s,late %,of the ideal,leases lost,tokens missing"

// ChangeCSV returns results as comma-separated values under a heading, a row each.
func ChangeCSV(results []Change) string {
	var b strings.Builder
	b.WriteString(changeColumns + "\n")
	for _, r := range results {
		fmt.Fprintf(&b, "%s,%s,%d,%.3f,%.3f,%.3f,%.4g,%.3f,%d,%.1f\n",
			r.Scenario, r.Mode, r.Latency.Milliseconds(), r.Force.Seconds(), r.Took.Seconds(), r.Exact.Seconds(), 100*r.Late, r.Share, r.Ended, float64(r.Missing)/1000)
	}
	return b.String()
}

// ParseChanges returns the rows of a text that [ChangeCSV] wrote.
func ParseChanges(text string) ([]Change, error) {
	rows, err := read(text, changeColumns)
	if err != nil {
		return nil, err
	}
	results := make([]Change, 0, len(rows))
	for _, row := range rows {
		r, err := parseChange(row)
		if err != nil {
			return nil, fmt.Errorf("row %q: %w", strings.Join(row, ","), err)
		}
		results = append(results, r)
	}
	return results, nil
}

func parseChange(row []string) (Change, error) {
	var numbers [8]float64
	errs := make([]error, len(numbers))
	for i := range numbers {
		n, err := strconv.ParseFloat(row[2+i], 64)
		numbers[i], errs[i] = n, err
	}
	seconds := func(x float64) time.Duration { return time.Duration(x*1e6+0.5) * time.Microsecond }
	return Change{
		Scenario: row[0], Mode: row[1], Latency: seconds(numbers[0] / 1000), Force: seconds(numbers[1]), Took: seconds(numbers[2]), Exact: seconds(numbers[3]),
		Late: numbers[4] / 100, Share: numbers[5], Ended: int64(numbers[6]), Missing: int64(numbers[7] * 1000),
	}, errors.Join(errs...)
}
