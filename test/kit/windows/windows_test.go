package windows_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
	"github.com/ratelimit/ratelimit/test/kit/windows"
)

// A bucket that is emptied at once and then drained as it refills is at the bound in
// every window. One millitoken more anywhere is found.
func TestWindowsAtTheBound(t *testing.T) {
	p := tokenbucket.Params{Capacity: 100_000, Amount: 50_000, Period: 1000}
	all := make([]windows.Taking, 0, 2000)
	for i := range int64(1000) { // the burst in calls of 5 ms, the refill in calls of no time
		all = append(all, windows.Taking{From: i * 5, To: 5000, Amount: 100})
	}
	for i := range int64(1000) {
		all = append(all, windows.Taking{From: 5000 + (i+1)*1000, To: 5000 + (i+1)*1000, Amount: 50})
	}
	all[0].Amount += 5 * 50 // the refill of the 5 ms of the burst
	got, err := windows.Check(p, all, 0)
	if err != nil || got.Broken || got.Tightest.Excess() != 0 {
		t.Fatalf("got %+v, %v; want a window at the bound and none beyond it", got, err)
	}
	for _, i := range []int{0, 500, 999, 1000, 1500, 1999} {
		all[i].Amount++
		got, err := windows.Check(p, all, 0)
		if err != nil || !got.Broken || got.Tightest.Excess() != 1 {
			t.Errorf("one millitoken too much in call %d: got %+v, %v", i, got, err)
		}
		if got, err = windows.Check(p, all, time.Millisecond); err != nil || got.Broken {
			t.Errorf("one millitoken too much in call %d, clocks 1 ms apart: got %+v, %v", i, got, err)
		}
		all[i].Amount--
	}
}

// A call that may have been applied outside of a window is not counted in it.
func TestWindowsCountWholeCalls(t *testing.T) {
	p := tokenbucket.Params{Capacity: 1000, Amount: 1000, Period: 1000}
	for _, tt := range []struct {
		name   string
		all    []windows.Taking
		broken bool
	}{
		{"apart by a refill", []windows.Taking{{From: 0, To: 10, Amount: 1000}, {From: 999_990, To: 1_000_000, Amount: 1000}}, false},
		{"applied a refill apart at best", []windows.Taking{{From: 0, To: 10, Amount: 1000}, {From: 500_000, To: 1_000_000, Amount: 1000}}, false},
		{"too early by 1 ms however applied", []windows.Taking{{From: 0, To: 10, Amount: 1000}, {From: 500_000, To: 999_000, Amount: 1000}}, true},
		{"one call beyond the capacity", []windows.Taking{{From: 7, To: 7, Amount: 1001}}, true},
		{"nothing", nil, false},
	} {
		if got, err := windows.Check(p, tt.all, 0); err != nil || got.Broken != tt.broken {
			t.Errorf("%s: got %+v, %v; want broken %t", tt.name, got, err, tt.broken)
		}
	}
}

// The sweep finds the same windows as a check of every window.
func TestWindowsAreAllWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := tokenbucket.Params{Capacity: rapid.Int64Range(1, 3000).Draw(t, "capacity"), Amount: rapid.Int64Range(1, 4000).Draw(t, "amount"), Period: rapid.Int64Range(1000, 3000).Draw(t, "period")}
		late := time.Duration(rapid.Int64Range(0, 500).Draw(t, "late")) * time.Millisecond
		all := make([]windows.Taking, rapid.IntRange(1, 12).Draw(t, "calls"))
		for i := range all {
			from := rapid.Int64Range(0, 20).Draw(t, "from") * 100_000
			all[i] = windows.Taking{From: from, To: from + rapid.Int64Range(0, 5).Draw(t, "took")*100_000, Amount: rapid.Int64Range(1, 1500).Draw(t, "taken")}
		}
		want := slowWindows(p, all, late)
		got, err := windows.Check(p, all, late)
		if err != nil {
			t.Fatal(err)
		}
		if got.Broken != want.Broken || got.Tightest.Excess() != want.Tightest.Excess() || got.Last.From != want.Last.From || got.Last.Excess() != want.Last.Excess() {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// slowWindows is Check by its definition.
func slowWindows(p tokenbucket.Params, all []windows.Taking, late time.Duration) (found windows.Found) {
	first := true
	for _, s := range all {
		for _, e := range all {
			if e.To < s.From {
				continue
			}
			w := windows.Window{From: s.From, To: e.To}
			for _, c := range all {
				if c.From >= w.From && c.To <= w.To {
					w.Taken += c.Amount
				}
			}
			refill := p.Amount * (w.To - w.From + late.Microseconds())
			w.Admitted = p.Capacity + refill/(1000*p.Period)
			if w.Taken > 0 && (first || w.Excess() > found.Tightest.Excess()) {
				found.Tightest, first = w, false
			}
			if w.Excess() > 0 && (!found.Broken || w.From > found.Last.From || w.From == found.Last.From && w.Excess() > found.Last.Excess()) {
				found.Broken, found.Last = true, w
			}
		}
	}
	return found
}

// A bucket of 10 tokens that refills one a second.
func ExampleCheck() {
	bucket := tokenbucket.Params{Capacity: 10_000, Amount: 1000, Period: 1000}
	calls := []windows.Taking{{From: 0, To: 5000, Amount: 10_000}, {From: 1_000_000, To: 1_005_000, Amount: 2000}}
	found, err := windows.Check(bucket, calls, 0)
	fmt.Println(found.Broken, err)
	fmt.Println(found.Tightest)
	// Output:
	// true <nil>
	// from 0.000000 s to 1.005000 s 12000 millitokens were taken, 11005 may be
}
