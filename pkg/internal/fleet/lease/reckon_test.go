package lease

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A lease draws only tokens that the centre has and that it has room for. It gives back
// only tokens that no request keeps, and leaves none without a place.
func TestDrawn(t *testing.T) {
	limits := []tokenbucket.Params{{Capacity: 1_000_000, Amount: 1_000_000, Period: 1000}}
	tests := map[string]struct {
		own, kept, centre int64 // millitokens
		room, was, bc     int   // parts: new, old, of the centre before
		rate              int   // new, of 100
		stock             float64
		want              int64
	}{
		"more":                          {10_000, 0, 500_000, 200, 100, 800, 100, 60_000, 50_000},
		"more than the centre has":      {10_000, 0, 30_000, 200, 100, 800, 100, 60_000, 30_000},
		"more than there is room":       {10_000, 0, 500_000, 50, 50, 800, 100, 60_000, 40_000},
		"back":                          {90_000, 0, 10_000, 100, 100, 800, 100, 20_000, -70_000},
		"back, but kept":                {90_000, 50_000, 10_000, 100, 100, 800, 100, 20_000, -40_000},
		"a little back is not worth it": {23_000, 0, 10_000, 100, 100, 800, 100, 20_000, 0},
		"back into a full centre":       {90_000, 0, 795_000, 100, 100, 800, 100, 20_000, -5_000},
		"room comes with its tokens":    {90_000, 0, 800_000, 300, 100, 800, 100, 90_000, 200_000},
		"room goes with its tokens":     {90_000, 0, 700_000, 20, 100, 800, 100, 20_000, -70_000},
		"debt of the centre":            {90_000, 0, -100_000, 100, 100, 800, 250, 90_000, -25_000},
		"a greater debt of it":          {90_000, 0, -900_000, 100, 100, 800, 250, 90_000, -90_000},
		"debt of it, but kept":          {90_000, 80_000, -100_000, 100, 100, 800, 250, 90_000, -10_000},
		"debt of both":                  {-5_000, 0, -100_000, 100, 100, 800, 250, 90_000, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := New(limits, limiter.LeasePolicy{}, 0)
			h.cands[0].buckets[0].Tokens = tt.own
			h.kept[0] = tt.kept
			centre, _ := Scale(limits[0], 0, tt.bc)
			v := View{Room: tt.bc, Centre: []tokenbucket.Bucket{{Tokens: tt.centre}}, Params: []tokenbucket.Params{centre}}
			p := Plan{Slot: Slot{Rate: tt.rate, Room: tt.room}, OldRate: 100, OldRoom: tt.was}
			if got := h.known.drawn(&p, &v, 0, tt.stock); got != tt.want {
				t.Errorf("draw: got %d, want %d", got, tt.want)
			}
		})
	}
}
