package rls

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A peak is the largest number of the current window and the one before, as computed from a list of
// all numbers.
func TestPeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type seen struct{ window, n int64 }
		var all []seen
		var p peak
		now := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "start"), 0)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(40*time.Second)).Draw(t, "pause")))
			window := now.UnixNano() / int64(peakWindow)
			if rapid.Bool().Draw(t, "see") {
				n := rapid.OneOf(rapid.Int64Range(-10, 2000), rapid.Int64()).Draw(t, "n")
				p.note(now, n)
				all = append(all, seen{window, min(max(n, 0), math.MaxUint16)})
			}
			want := int64(0)
			for _, s := range all {
				if s.window >= window-1 {
					want = max(want, s.n)
				}
			}
			if got := p.at(now); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
		}
	})
}

// A clock that goes back makes no peak last longer.
func TestPeakOfAClockThatGoesBack(t *testing.T) {
	var p peak
	now := time.Unix(1_000_000, 0)
	p.note(now, 5)
	p.note(now.Add(-time.Hour), 7)
	if got := p.at(now.Add(-time.Hour)); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
	if got := p.at(now.Add(2 * peakWindow)); got != 0 {
		t.Errorf("a minute later: got %d, want 0", got)
	}
}
