package dynamo

import (
	"testing"
)

func TestSimulation(t *testing.T) {
	admitted, denied := 0, 0
	for seed := range uint64(3000) {
		s := newSim(t, seed, drawFeatures, sabotage{})
		if err := s.run(); err != nil {
			t.Fatalf("seed %d, %+v: %v", seed, s.features, err)
		}
		for _, c := range s.calls {
			if c.answered != 0 && c.request.err == nil {
				if c.request.admitted {
					admitted++
				} else {
					denied++
				}
			}
		}
	}
	t.Logf("%d admitted, %d denied", admitted, denied)
}
