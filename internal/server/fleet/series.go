package fleet

import (
	"maps"
	"sync"
	"time"
)

const (
	// Step is the length of a step of a series. Steps begin at multiples of it.
	Step = 10 * time.Second
	// Steps is how many steps there are at most.
	Steps = 180
)

// stepOf returns the number of the step that a time is in.
func stepOf(t time.Time) int64 { return t.Unix() / int64(Step/time.Second) }

// stepTime returns the begin of a step.
func stepTime(n int64) time.Time { return time.Unix(n*int64(Step/time.Second), 0).UTC() }

// counts are numbers of decisions by result, one for each step. All have the same length.
type counts map[string][]int64

// window is the counts of steps that follow each other.
type window struct {
	first   int64 // number of the first step
	steps   int   // of them
	results counts
}

// recorder has the decisions of this process in each of the last steps. It reads counters once a step, and
// costs a decision nothing. It is safe for concurrent use.
type recorder struct {
	decided func() map[string]int64 // since the start, by result; the results are always the same

	mu    sync.Mutex
	first int64              // the step of the start
	at    int64              // the step at hand
	base  map[string]int64   // the counters at its begin
	rings map[string][]int64 // by result: Steps numbers, each at its step modulo Steps
}

func newRecorder(now time.Time, decided func() map[string]int64) *recorder {
	base := decided()
	r := &recorder{decided: decided, first: stepOf(now), at: stepOf(now), base: base, rings: make(map[string][]int64, len(base))}
	for result := range base {
		r.rings[result] = make([]int64, Steps)
	}
	return r
}

// turn ends the step at hand once it is over. Where it was not called for some steps, that one has all of their
// decisions. A clock that went back stays in the step at hand.
func (r *recorder) turn(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turnTo(now)
}

// turnTo is turn under the lock. It returns the counters.
func (r *recorder) turnTo(now time.Time) map[string]int64 {
	total, next := r.decided(), stepOf(now)
	if next <= r.at {
		return total
	}
	for result, ring := range r.rings {
		ring[r.at%Steps] = total[result] - r.base[result]
		for skipped := max(r.at+1, next-Steps+1); skipped <= next; skipped++ {
			ring[skipped%Steps] = 0
		}
	}
	r.at, r.base = next, total
	return total
}

// read returns the last steps, and the decisions since the start.
func (r *recorder) read(now time.Time) (w window, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counters := r.turnTo(now)
	w.first = max(r.first, r.at-Steps+1)
	w.steps = int(r.at - w.first + 1)
	w.results = make(counts, len(r.rings))
	for result, ring := range r.rings {
		list := make([]int64, 0, w.steps)
		for n := w.first; n < r.at; n++ {
			list = append(list, ring[n%Steps])
		}
		w.results[result] = append(list, counters[result]-r.base[result])
	}
	for n := range maps.Values(counters) {
		total += n
	}
	return w, total
}

// end is the number of the step at hand.
func (w *window) end() int64 { return w.first + int64(w.steps) - 1 }

// sumOf adds up windows over the steps up to one. Steps that a window does not have count 0.
func sumOf(end int64, all []window) window {
	sum := window{first: end, results: counts{}}
	for i := range all {
		sum.first = min(sum.first, all[i].first)
	}
	sum.first = max(sum.first, end-Steps+1)
	sum.steps = int(end - sum.first + 1)
	for i := range all {
		for result, list := range all[i].results {
			to := sum.results[result]
			if to == nil {
				to = make([]int64, sum.steps)
				sum.results[result] = to
			}
			for j, n := range list {
				if at := all[i].first + int64(j) - sum.first; at >= 0 && at < int64(sum.steps) {
					to[at] += n
				}
			}
		}
	}
	return sum
}
