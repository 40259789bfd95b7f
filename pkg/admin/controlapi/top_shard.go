package controlapi

import (
	"maps"
	"math/bits"
	"slices"
	"sync"
	"time"
)

// A window is counted in steps, so that it can move on in steps.
const (
	steps = 2
	step  = TopWindow / steps
)

// shard counts the keys whose hashes belong to it.
type shard struct {
	mu     sync.Mutex
	at     int64            // number of the step at hand
	tables [steps + 1]table // of the step at hand and those before, by their number
}

func (s *shard) add(at int64, hash uint64, k TopKey, amount int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(at)
	s.table(s.at).add(hash, k, amount)
}

func (s *shard) table(at int64) *table {
	const n = int64(len(s.tables))
	return &s.tables[(at%n+n)%n] // a number can be below 0
}

// turn begins a step. A clock that went back stays in the step at hand.
func (s *shard) turn(at int64) {
	if at <= s.at {
		return
	}
	for next := max(s.at+1, at-steps); next <= at; next++ {
		s.table(next).clear()
	}
	s.at = at
}

// read returns the rows of the last Window with the most events, at most n. Those of the
// oldest step count in the proportion in which it overlaps; rest is how much of the step at
// hand is to come.
func (s *shard) read(at int64, rest time.Duration, n int, f *TopFilter) []TopRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(at)
	byHash := make(map[uint64]sum, shardKeys)
	for ago := range int64(steps) {
		s.table(s.at-ago).read(byHash, f, func(n int64) int64 { return n })
	}
	s.table(s.at-steps).read(byHash, f, func(n int64) int64 { return share(n, rest, step) })
	sums := slices.SortedFunc(maps.Values(byHash), compareSums)
	rows := make([]TopRow, 0, min(n, len(sums)))
	for _, sum := range sums[:cap(rows)] {
		rows = append(rows, TopRow{TopKey: sum.of.key(), Events: sum.events, Amount: sum.amount})
	}
	return rows
}

// share returns n × part / whole, for 0 to whole; of a number below 0 it is 0.
func share(n int64, part, whole time.Duration) int64 {
	if n <= 0 || part <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	quotient, _ := bits.Div64(hi, lo, uint64(whole)) // #nosec G115 -- all are above 0
	return int64(quotient)                           // #nosec G115 -- at most n
}

// stepOf returns the number of the step that a time is in, and how much of it is to come.
func stepOf(now time.Time) (at int64, rest time.Duration) {
	n := now.UnixNano()
	return n / int64(step), step - time.Duration(n%int64(step))
}
