package cli

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// loadHistogram counts durations in classes of at most an eighth of their value. The zero value is
// empty.
type loadHistogram struct {
	counts [64 * classesPerDouble]int64
	total  int64
	most   time.Duration
}

// classesPerDouble is the number of classes from a duration to the double of it.
const classesPerDouble = 8

// Add counts a duration. One below 0 counts as 0.
func (h *loadHistogram) Add(d time.Duration) {
	d = max(d, 0)
	h.counts[classOf(d)]++
	h.total++
	h.most = max(h.most, d)
}

// Merge adds the counts of another histogram.
func (h *loadHistogram) Merge(other *loadHistogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.most = max(h.most, other.most)
}

// Count is the number of durations.
func (h *loadHistogram) Count() int64 { return h.total }

// Max is the longest duration.
func (h *loadHistogram) Max() time.Duration { return h.most }

// classOf is the class of a duration: below 8 ns one for each, then 8 for each double.
func classOf(d time.Duration) int {
	n := uint64(d) // #nosec G115 -- it is not below 0
	if n < classesPerDouble {
		return int(n) // #nosec G115 -- below 8
	}
	exponent := bits.Len64(n) - 4                                              // of the lowest of the four bits that select the class
	return (exponent+1)*classesPerDouble + int(n>>exponent) - classesPerDouble // #nosec G115 -- n>>exponent is 8 to 15
}

// upper is the longest duration of a class.
func upper(class int) time.Duration {
	if class < classesPerDouble {
		return time.Duration(class)
	}
	exponent := class/classesPerDouble - 1
	return time.Duration((class%classesPerDouble+classesPerDouble+1)<<exponent - 1)
}

// Quantile is a duration that thousandths of all durations do not exceed, at most an eighth
// too long. It is 0 of an empty histogram.
func (h *loadHistogram) Quantile(thousandths int64) time.Duration {
	rank := (h.total*thousandths + 999) / 1000
	var seen int64
	for class, n := range h.counts {
		seen += n
		if n > 0 && seen >= rank {
			return min(upper(class), h.most)
		}
	}
	return h.most
}

// chartWidth is the length of the longest bar, in characters.
const chartWidth = 40

// Chart draws the histogram as bars, one for each double of a duration.
func (h *loadHistogram) Chart() string {
	type bar struct {
		upTo time.Duration
		n    int64
	}
	var bars []bar
	var most int64
	for class := 0; class < len(h.counts); class += classesPerDouble {
		var n int64
		for _, c := range h.counts[class : class+classesPerDouble] {
			n += c
		}
		if n > 0 || len(bars) > 0 {
			bars = append(bars, bar{upper(class + classesPerDouble - 1), n})
			most = max(most, n)
		}
	}
	for len(bars) > 0 && bars[len(bars)-1].n == 0 {
		bars = bars[:len(bars)-1]
	}
	var b strings.Builder
	for _, each := range bars {
		width := int(each.n * chartWidth / most)
		if each.n > 0 {
			width = max(width, 1)
		}
		fmt.Fprintf(&b, "%10s  %-*s %d\n", "≤ "+roundLatency(each.upTo).String(), chartWidth, strings.Repeat("█", width), each.n)
	}
	return b.String()
}

// roundLatency is a duration with three digits.
func roundLatency(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
