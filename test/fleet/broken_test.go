package fleet_test

import (
	"testing"
	"time"
)

// A fleet whose writes lack a condition is found out.
func TestDefectsAreFound(t *testing.T) {
	for _, defect := range []string{"refill of another's time", "tokens that are gone"} {
		t.Run(defect, func(t *testing.T) {
			f := newFleet(t, scenario{load: "duel", skews: make([]time.Duration, 3), decisions: 30_000, defect: defect, patience: 2 * time.Minute})
			if err := f.run(t.Context()); err != nil {
				t.Fatalf("seed %d: %v", f.seed, err)
			}
			f.report(t)
			if faults := f.check(t); len(faults) == 0 {
				t.Errorf("seed %d: nothing was found", f.seed)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		f := newFleet(t, scenario{load: "duel", skews: make([]time.Duration, 3), decisions: 30_000, patience: 2 * time.Minute})
		if err := f.run(t.Context()); err != nil {
			t.Fatalf("seed %d: %v", f.seed, err)
		}
		f.report(t)
		for _, fault := range f.check(t) {
			t.Errorf("seed %d: %s", f.seed, fault)
		}
	})
}
