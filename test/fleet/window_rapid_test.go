package fleet_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A bucket that is emptied at once and then drained as it refills is at the bound in
// every window; one millitoken more anywhere is found.
func TestWindowsAtTheBound(t *testing.T) {
	p := tokenbucket.Params{Capacity: 100_000, Amount: 50_000, Period: 1000}
	all := make([]taking, 0, 2000)
	for i := range int64(1000) { // the burst in calls of 5 ms, the refill in calls of no time
		all = append(all, taking{from: i * 5, to: 5000, amount: 100})
	}
	for i := range int64(1000) {
		all = append(all, taking{from: 5000 + (i+1)*1000, to: 5000 + (i+1)*1000, amount: 50})
	}
	all[0].amount += 5 * 50 // what refills in the 5 ms of the burst
	got, err := checkWindows(p, all, 0)
	if err != nil || got.broken || got.tightest.excess() != 0 {
		t.Fatalf("got %+v, %v; want a window at the bound and none beyond it", got, err)
	}
	for _, i := range []int{0, 500, 999, 1000, 1500, 1999} {
		all[i].amount++
		got, err := checkWindows(p, all, 0)
		if err != nil || !got.broken || got.tightest.excess() != 1 {
			t.Errorf("one millitoken too much in call %d: got %+v, %v", i, got, err)
		}
		if got, err = checkWindows(p, all, time.Millisecond); err != nil || got.broken {
			t.Errorf("one millitoken too much in call %d, clocks 1 ms apart: got %+v, %v", i, got, err)
		}
		all[i].amount--
	}
}

// A call that may have been applied outside of a window is not counted in it.
func TestWindowsCountWholeCalls(t *testing.T) {
	p := tokenbucket.Params{Capacity: 1000, Amount: 1000, Period: 1000}
	for _, tt := range []struct {
		name   string
		all    []taking
		broken bool
	}{
		{"apart by a refill", []taking{{from: 0, to: 10, amount: 1000}, {from: 999_990, to: 1_000_000, amount: 1000}}, false},
		{"applied a refill apart at best", []taking{{from: 0, to: 10, amount: 1000}, {from: 500_000, to: 1_000_000, amount: 1000}}, false},
		{"too early by 1 ms however applied", []taking{{from: 0, to: 10, amount: 1000}, {from: 500_000, to: 999_000, amount: 1000}}, true},
		{"one call beyond the capacity", []taking{{from: 7, to: 7, amount: 1001}}, true},
		{"nothing", nil, false},
	} {
		if got, err := checkWindows(p, tt.all, 0); err != nil || got.broken != tt.broken {
			t.Errorf("%s: got %+v, %v; want broken %t", tt.name, got, err, tt.broken)
		}
	}
}

// The sweep finds what looking at every window finds.
func TestWindowsAreAllWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := tokenbucket.Params{Capacity: rapid.Int64Range(1, 3000).Draw(t, "capacity"), Amount: rapid.Int64Range(1, 4000).Draw(t, "amount"), Period: rapid.Int64Range(1000, 3000).Draw(t, "period")}
		late := time.Duration(rapid.Int64Range(0, 500).Draw(t, "late")) * time.Millisecond
		all := make([]taking, rapid.IntRange(1, 12).Draw(t, "calls"))
		for i := range all {
			from := rapid.Int64Range(0, 20).Draw(t, "from") * 100_000
			all[i] = taking{from: from, to: from + rapid.Int64Range(0, 5).Draw(t, "took")*100_000, amount: rapid.Int64Range(1, 1500).Draw(t, "taken")}
		}
		want := slowWindows(p, all, late)
		got, err := checkWindows(p, all, late)
		if err != nil {
			t.Fatal(err)
		}
		if got.broken != want.broken || got.tightest.excess() != want.tightest.excess() || got.last.from != want.last.from || got.last.excess() != want.last.excess() {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// slowWindows is checkWindows by its definition.
func slowWindows(p tokenbucket.Params, all []taking, late time.Duration) (found windows) {
	first := true
	for _, s := range all {
		for _, e := range all {
			if e.to < s.from {
				continue
			}
			w := window{from: s.from, to: e.to}
			for _, c := range all {
				if c.from >= w.from && c.to <= w.to {
					w.taken += c.amount
				}
			}
			refill := p.Amount * (w.to - w.from + late.Microseconds())
			w.admitted = p.Capacity + refill/(1000*p.Period)
			if w.taken > 0 && (first || w.excess() > found.tightest.excess()) {
				found.tightest, first = w, false
			}
			if w.excess() > 0 && (!found.broken || w.from > found.last.from || w.from == found.last.from && w.excess() > found.last.excess()) {
				found.broken, found.last = true, w
			}
		}
	}
	return found
}
