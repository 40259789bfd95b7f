package lease

import (
	"math"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// While tokens are short a new lease gets its equal part of them, as far as is known how many
// replicas use the item.
func TestFirstGrantLeavesForOthers(t *testing.T) {
	l := level{whole: 5_000_000, rate: 1000, centre: 900_000, demand: 13_300}
	rich := other{demand: 13.3, stock: 0.06} // 300 tokens
	for name, tt := range map[string]struct {
		scene scene
		want  float64
	}{
		"alone, as far as is known": {scene{age: -1}, 450_000},
		"two wait":                  {scene{age: -1, waiting: 2}, 300_000},
		"one waits":                 {scene{age: -1, waiting: 1, others: []other{rich}}, 400_000},
		"a moment later":            {scene{age: settled, waiting: 2}, 300_000},
		"once it is known":          {scene{age: 2 * settled, waiting: 2}, 900_000},
	} {
		s := tt.scene
		s.centreRate, s.centreRoom, s.demand, s.requests, s.rtt = 1, 1, 13.3, 13.3, 5
		if got := s.scarce(&l, 0.05).stock; math.Abs(got-tt.want) > tt.want/100 {
			t.Errorf("%s: a stock of %v, want %v", name, got, tt.want)
		}
	}
}

// The rate of a centre that is full brings nothing: a first grant gets more of it.
func TestFirstGrantOfAFullItem(t *testing.T) {
	for _, full := range []bool{false, true} {
		s := scene{age: -1, centreRate: 0.8, demand: 2, requests: 2, full: full}
		if got, want := s.share(), map[bool]float64{false: firstRate, true: 0.4}[full]; math.Abs(got-want) > 1e-9 {
			t.Errorf("full %v: a rate of %v, want %v", full, got, want)
		}
	}
}

func TestViewIsFull(t *testing.T) {
	p := tokenbucket.Params{Capacity: 1000, Amount: 1000, Period: 1000}
	v := View{Centre: []tokenbucket.Bucket{tokenbucket.Full(p, 0), {Tokens: 900}}, Params: []tokenbucket.Params{p, p}}
	for at, want := range map[int64]bool{99: false, 100: true} {
		if got := v.full(at); got != want {
			t.Errorf("at %d: got %v, want %v", at, got, want)
		}
	}
}

// A demand that was frequent comes back as it was; a lone request after it does not.
func TestDemandComesBack(t *testing.T) {
	d, now := newDemand(1), int64(1_000_000)
	come := func(requests int, later int64) {
		for now += later; requests > 0; requests-- {
			d.count(now, []Draw{{Take: 2000}})
		}
	}
	for range 100 {
		come(2, 1)
	}
	rate := d.rate(0, now)
	come(1, 10_000)
	if got := d.rate(0, now); got != rate || !d.frequent(now) {
		t.Errorf("after the first request: %v millitokens a ms, frequent %v, want %v as before", got, d.frequent(now), rate)
	}
	come(1, 10_000)
	if d.frequent(now) {
		t.Error("lone requests are frequent")
	}
	come(mostAsked, 10_000)
	if got := d.rate(0, now); got > mostAsked*2000/shortestAge*1.1 {
		t.Errorf("after some requests: %v millitokens a ms, want those that came", got)
	}
}
