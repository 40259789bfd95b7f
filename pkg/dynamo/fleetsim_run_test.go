package dynamo

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

func TestSimulate(t *testing.T) {
	sum := make(map[string]int)
	decisions := 0
	for seed := range uint64(60) {
		f := newFleet(t, seed, drawFleetFeatures, fleetSabotage{})
		if err := f.run(); err != nil {
			t.Fatalf("seed %d, %+v: %v", seed, f.fleetFeatures, err)
		}
		for what, n := range f.seen {
			sum[what] += n
		}
		decisions += f.admitted + f.denied
		sum["admitted"] += f.admitted
		sum["denied"] += f.denied
		sum["failed"] += f.failed
		sum["writes"] += f.writes
	}
	for _, what := range slices.Sorted(maps.Keys(sum)) {
		t.Log(fmt.Sprint(what, ": ", sum[what]))
	}
}
