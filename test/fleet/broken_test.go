package fleet_test

import (
	"testing"
	"time"
)

// A fleet whose writes lack a condition is found out, and one whose writes do not is
// not, by the same load.
func TestDefectsAreFound(t *testing.T) {
	for _, tt := range []struct {
		defect string
		found  bool
	}{
		{"", false}, {"tokens that are gone", true},
	} {
		t.Run("defect "+tt.defect, func(t *testing.T) {
			f := newFleet(t, scenario{load: "duel", skews: make([]time.Duration, 3), decisions: 30_000, defect: tt.defect, patience: 5 * time.Minute})
			if err := f.run(t.Context()); err != nil {
				t.Fatalf("seed %d: %v", f.seed, err)
			}
			f.report(t)
			if faults, _ := f.check(t); len(faults) > 0 != tt.found {
				t.Errorf("seed %d: found %q; want something: %t", f.seed, faults, tt.found)
			}
		})
	}
}
