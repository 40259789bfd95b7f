package benchtable_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/benchtable"
)

// The tests run in synctest bubbles: the clock moves only while an operation
// spends time, so that every time is exact and nothing waits.

func spend(d time.Duration) { <-time.After(d) }

// operation takes each(turn) for each of its n operations.
type operation struct {
	each  func(turn int) time.Duration
	turns []int // n of each call
}

func (o *operation) run(n int) {
	spend(time.Duration(n) * o.each(len(o.turns)))
	o.turns = append(o.turns, n)
}

func steady(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

func TestCompare(t *testing.T) {
	tests := []struct {
		name  string
		a, b  time.Duration
		ratio float64
		wantA int // operations in a turn
		wantB int
	}{
		{"a is slower", 300, 100, 3, 66_666, 200_000},
		{"b is slower", 100, 400, 0.25, 200_000, 50_000},
		{"far apart", 10 * time.Millisecond, 10, 1e6, 2, 2_000_000},
		{"longer than a turn", 300 * time.Millisecond, 600 * time.Millisecond, 0.5, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := &operation{each: steady(tt.a)}, &operation{each: steady(tt.b)}
				ratio, aNs, bNs := benchtable.Compare(3, a.run, b.run)
				if !near(ratio, tt.ratio) || !near(aNs, float64(tt.a)) || !near(bNs, float64(tt.b)) {
					t.Errorf("got %v, %v ns, %v ns; want %v, %v ns, %v ns", ratio, aNs, bNs, tt.ratio, float64(tt.a), float64(tt.b))
				}
				if got := a.turns[len(a.turns)-1]; got != tt.wantA {
					t.Errorf("operations in a turn of a: got %d, want %d", got, tt.wantA)
				}
				if got := b.turns[len(b.turns)-1]; got != tt.wantB {
					t.Errorf("operations in a turn of b: got %d, want %d", got, tt.wantB)
				}
			})
		})
	}
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-9*want }

// TestCompareTakesTurns: a b b a in each round, after calibration.
func TestCompareTakesTurns(t *testing.T) {
	tests := []struct {
		rounds int
		want   string
	}{
		{2, "abbaabba"},
		{1, "abba"},
		{0, "abba"},
		{-1, "abba"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			var order []byte
			turn := func(name byte) func(int) {
				return func(int) {
					order = append(order, name)
					spend(time.Second) // calibrated by two calls
				}
			}
			benchtable.Compare(tt.rounds, turn('a'), turn('b'))
			if got := string(order[4:]); got != tt.want {
				t.Errorf("turns in %d rounds: got %s, want %s", tt.rounds, got, tt.want)
			}
		})
	}
}

// TestCompareOnAMachineThatSlowsDown: b costs twice a all along, while the machine
// gets slower from turn to turn. The order of the turns cancels it.
func TestCompareOnAMachineThatSlowsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowness := 10
		op := func(cost int) func(int) {
			return func(int) {
				spend(time.Duration(cost*slowness) * time.Second)
				slowness++
			}
		}
		if ratio, _, _ := benchtable.Compare(5, op(1), op(2)); !near(ratio, 0.5) {
			t.Errorf("ratio: got %v, want 0.5", ratio)
		}
	})
}

// TestCompareTakesTheMedian: a round in which something else ran does not count.
func TestCompareTakesTheMedian(t *testing.T) {
	tests := []struct {
		name   string
		rounds []time.Duration // the time of a in each, where b takes a second
		want   float64
	}{
		{"the middle one", []time.Duration{2 * time.Second, time.Hour, 3 * time.Second}, 3},
		{"between the middle two", []time.Duration{4 * time.Second, time.Hour, 1 * time.Second, 2 * time.Second}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &operation{each: func(turn int) time.Duration {
					if turn < 2 { // calibrates
						return time.Second
					}
					return tt.rounds[(turn-2)/2]
				}}
				b := &operation{each: steady(time.Second)}
				ratio, aNs, bNs := benchtable.Compare(len(tt.rounds), a.run, b.run)
				if ratio != tt.want || aNs != tt.want*1e9 || bNs != 1e9 {
					t.Errorf("got %v, %v ns, %v ns; want %v, %v ns, 1e+09 ns", ratio, aNs, bNs, tt.want, tt.want*1e9)
				}
			})
		})
	}
}

// TestCompareAfterASlowStart: a first call that sets things up, and a pause while
// calibrating, do not shorten the turns.
func TestCompareAfterASlowStart(t *testing.T) {
	slowTurn := func(slow int) func(int) time.Duration {
		return func(turn int) time.Duration {
			if turn == slow {
				return time.Minute
			}
			return 100
		}
	}
	for slow := range 4 {
		synctest.Test(t, func(t *testing.T) {
			a, b := &operation{each: slowTurn(slow)}, &operation{each: steady(100)}
			ratio, _, _ := benchtable.Compare(3, a.run, b.run)
			if got := a.turns[len(a.turns)-1]; got != 200_000 || ratio != 1 {
				t.Errorf("turn %d slow: got %d operations in a turn and a ratio of %v, want 200000 and 1", slow, got, ratio)
			}
		})
	}
}

// TestCompareOfNothing: operations that take no time end the calibration too.
func TestCompareOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nothing := func(int) {}
		ratio, aNs, bNs := benchtable.Compare(2, nothing, nothing)
		if ratio != 1 || aNs <= 0 || bNs <= 0 {
			t.Errorf("got %v, %v ns, %v ns; want a ratio of 1 and times above 0", ratio, aNs, bNs)
		}
	})
}
