//go:build !race

// The race detector allocates on its own account.

package lease_test

import "testing"

func TestAllocations(t *testing.T) {
	h, now, draws := held(t, 2)
	tests := map[string]func(){
		"a decision": func() { decide(h, now, draws) },
		"Report":     func() { h.Report(0, now, 1000, true) },
		"Charge":     func() { h.Charge(now, 0, 10, h.Overdraft(0, now, -100)) },
		"Refund":     func() { h.Refund(now, 0, 10) },
		"Miss":       func() { h.Miss(now, 15, draws) },
		"Wake":       func() { h.Wake() },
	}
	for name, call := range tests {
		t.Run(name, func(t *testing.T) {
			got := testing.AllocsPerRun(100, func() {
				now++
				call()
			})
			if got != 0 {
				t.Errorf("allocations: got %v, want 0", got)
			}
		})
	}
}
