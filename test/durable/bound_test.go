package durable_test

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"testing"
	"time"
)

// taking is an amount that was admitted at some moment of a call.
type taking struct {
	from, to int64 // the whole call, in microseconds
	amount   int64 // tokens
}

// bound is a limit: its capacity, and its refill in each period.
type bound struct {
	burst, refill int64
	period        time.Duration
}

// check searches for moments, one in each call, at which one token bucket would have
// given all admissions. There are such moments if, and only if, in every window the
// calls that lie wholly in it took no more than burst + refill. late is how much longer
// a call may have taken.
//
// A bucket that gives as soon as it can, to whose call ends first, finds them.
func (b bound) check(all []taking, late time.Duration) error {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b taking) int { return cmp.Compare(a.from, b.from) })
	unit := b.period.Microseconds() // of a token: the gain of a microsecond is refill
	level, now := b.burst*unit, int64(0)
	var open waiting
	for len(all) > 0 || len(open) > 0 {
		if len(open) == 0 {
			level, now = b.pass(level, now, max(now, all[0].from)), max(now, all[0].from)
		}
		for len(all) > 0 && all[0].from <= now {
			heap.Push(&open, taking{all[0].from, all[0].to, all[0].amount * unit})
			all = all[1:]
		}
		first := &open[0]
		given := min(level, first.amount)
		level -= given
		first.amount -= given
		if first.amount == 0 {
			if now > first.to+late.Microseconds() {
				return fmt.Errorf("the tokens of a call from %d µs to %d µs were there only at %d µs", first.from, first.to, now)
			}
			heap.Pop(&open)
			continue
		}
		next := now + (first.amount+b.refill-1)/b.refill
		if len(all) > 0 {
			next = min(next, all[0].from)
		}
		level, now = b.pass(level, now, next), next
	}
	return nil
}

// pass returns the level of a bucket after some time.
func (b bound) pass(level, from, to int64) int64 {
	full := b.burst * b.period.Microseconds()
	if to-from > full/b.refill {
		return full
	}
	return min(level+(to-from)*b.refill, full)
}

// waiting is a heap of calls by their end.
type waiting []taking

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return w[i].to < w[j].to }
func (w waiting) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }

// Push implements heap.Interface.
func (w *waiting) Push(x any) { *w = append(*w, x.(taking)) }

// Pop implements heap.Interface.
func (w *waiting) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

func TestBound(t *testing.T) {
	b := bound{burst: 10, refill: 2, period: time.Second}
	second := int64(1_000_000)
	for _, test := range []struct {
		name string
		all  []taking
		late time.Duration
		ok   bool
	}{
		{"nothing", nil, 0, true},
		{"all at once", []taking{{0, 0, 4}, {0, 0, 6}}, 0, true},
		{"one too many", []taking{{0, 0, 4}, {0, 0, 7}}, 0, false},
		{"after a refill", []taking{{0, 0, 10}, {second, second, 2}}, 0, true},
		{"just before it", []taking{{0, 0, 10}, {second - 1, second - 1, 2}}, 0, false},
		{"just before it, and that late", []taking{{0, 0, 10}, {second - 1, second - 1, 2}}, time.Microsecond, true},
		{"in a long call", []taking{{0, 0, 10}, {0, second, 2}}, 0, true},
		{"in two long calls", []taking{{0, 0, 10}, {0, second, 2}, {0, second, 1}}, 0, false},
		{"the longer one waits", []taking{{0, 2 * second, 10}, {second / 2, second / 2, 1}, {0, 0, 1}}, 0, true},
		{"it does not refill beyond its burst", []taking{{0, 0, 1}, {100 * second, 100 * second, 11}}, 0, false},
	} {
		if err := b.check(test.all, test.late); (err == nil) != test.ok {
			t.Errorf("%s: got %v, want one: %v", test.name, err, !test.ok)
		}
	}
}
