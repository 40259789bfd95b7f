package lease

import "testing"

// Renewals of holders leave each other time: on a slow store for as many round trips.
func TestPaceOfSlowStore(t *testing.T) {
	for _, tt := range []struct {
		rtt     float64
		holders int
		want    int64
	}{{4, 3, 50}, {4, 10, 100}, {40, 3, 180}, {40, 20, 1200}} {
		p := pace{every: firstEvery, draw: 0.5}
		p.applied(1000, tt.holders, tt.rtt, true, true)
		if p.every != tt.want || p.next != 1000+tt.want {
			t.Errorf("%d holders, round trip of %v ms: got %d ms, next at %d, want %d ms", tt.holders, tt.rtt, p.every, p.next, tt.want)
		}
	}
}
