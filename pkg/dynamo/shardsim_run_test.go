package dynamo

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestShardSimulation(t *testing.T) {
	admitted, denied := 0, 0
	shapes := make(map[string]int)
	for seed := range uint64(shardRuns) {
		s := newShardSim(t, seed, drawShardFeatures, shardSabotage{})
		if err := s.run(); err != nil {
			t.Fatalf("seed %d, %+v: %v", seed, s.shardFeatures, err)
		}
		admitted, denied = admitted+s.admitted, denied+s.denied
		for what, n := range s.shapes {
			shapes[what] += n
		}
	}
	for _, what := range []string{"split to 8", "make", "absorb", "absorb what is missing", "swap"} {
		if shapes[what] == 0 {
			t.Errorf("no write of the kind %q", what)
		}
	}
	t.Logf("%d admitted, %d denied; kinds of writes: %s", admitted, denied, strings.Join(slices.Sorted(maps.Keys(shapes)), ", "))
}
