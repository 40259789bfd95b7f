package benchtable

import (
	"slices"
	"time"
)

const (
	// turnTime is the time to which one turn of an operation is calibrated. A round
	// has four turns, so it takes 80 ms: long enough for the clock to be exact, short
	// enough for both operations to see the same machine.
	turnTime = 20 * time.Millisecond
	// maxOps bounds the operations of a turn, for an operation that takes no time.
	maxOps = 1 << 30
)

// Compare measures two operations against each other. a and b run their operation
// n times, and are called a few times more to find the n.
//
// Each has an n of its own, so that a round takes about 80 ms; an operation of more
// than 20 ms runs once in a turn. Within a round they take turns, a b b a, so that
// a machine that gets steadily slower or faster favours neither. There are as many
// rounds as said, at least one.
//
// ratioMedian is the median over the rounds of the time of one a as a multiple of
// the time of one b. The ns per operation are medians too, each of its own: their
// quotient need not be ratioMedian, and it is ratioMedian that noise disturbs least.
func Compare(rounds int, a, b func(n int)) (ratioMedian, aNsPerOp, bNsPerOp float64) {
	aOps, bOps := calibrate(a), calibrate(b)
	rounds = max(rounds, 1)
	ratios, aNs, bNs := make([]float64, rounds), make([]float64, rounds), make([]float64, rounds)
	for i := range rounds {
		aTime := measure(aOps, a)
		bTime := measure(bOps, b)
		bTime += measure(bOps, b)
		aTime += measure(aOps, a)
		aNs[i], bNs[i] = nsPerOp(aTime, 2*aOps), nsPerOp(bTime, 2*bOps)
		ratios[i] = aNs[i] / bNs[i]
	}
	return Median(ratios), Median(aNs), Median(bNs)
}

// calibrate returns how many operations take about turnTime. Its runs also warm up
// caches and branch predictors. The shorter of two measurements counts, so that it
// includes neither a pause nor the setup of a first call.
func calibrate(op func(n int)) int {
	n := 1
	for {
		took := min(measure(n, op), measure(n, op))
		want := int(min(float64(n)*float64(turnTime)/float64(took), maxOps))
		if took >= turnTime/2 || n >= maxOps {
			return max(want, 1)
		}
		// A short measurement says little: step by at most 100 times.
		n = min(max(want, n+1), 100*n)
	}
}

// measure returns the time of n operations, at least a nanosecond, so that it can
// be divided by.
func measure(n int, op func(n int)) time.Duration {
	start := time.Now()
	op(n)
	return max(time.Since(start), 1)
}

func nsPerOp(d time.Duration, ops int) float64 {
	return float64(d.Nanoseconds()) / float64(ops)
}

// Median returns the median of xs, and sorts xs, which must not be empty.
func Median(xs []float64) float64 {
	slices.Sort(xs)
	mid := len(xs) / 2
	if len(xs)%2 == 1 {
		return xs[mid]
	}
	return (xs[mid-1] + xs[mid]) / 2
}
