package dynamo

import (
	"testing"
)

func TestSimulation(t *testing.T) {
	admitted, denied, leased := 0, 0, 0
	for seed := range uint64(3000) {
		s := newSim(t, seed, drawFeatures, sabotage{})
		if err := s.run(); err != nil {
			t.Fatalf("seed %d, %+v: %v", seed, s.features, err)
		}
		leased += s.leased
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
	t.Logf("%d admitted, %d of them from leases, %d denied", admitted, leased, denied)
}
