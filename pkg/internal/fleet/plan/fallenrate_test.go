package plan_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestAFallenRateCostsTheDifferenceOfClocks: a replica empties a full bucket by a clock that is ahead. Another one
// lowers the rate by a clock that is behind. The refill of the time between the two clocks is by the new rate.
func TestAFallenRateCostsTheDifferenceOfClocks(t *testing.T) {
	const later, high, low = int64(700), int64(10), int64(4) // ms, and millitokens in one
	for _, apart := range []int64{0, 1, 200} {
		b := newBench(t) // emptied at the epoch by the clock that is ahead
		st := plan.NewStage(b.state, epoch+later-apart, plan.Options{})
		if got, err := st.Bring(limitsOf(t, limiter.Custom("l", 10, low, time.Second)), 2); err != nil || got != plan.Newer {
			t.Fatalf("Bring: %d, %v", got, err)
		}
		b.land(st.Write(b.id(2), 1))
		want := high*later - (high-low)*apart
		if got := plan.At(b.state, epoch+later).Tokens(0, epoch+later); got != want {
			t.Errorf("clocks %d ms apart: %d millitokens are there, want %d", apart, got, want)
		}
	}
}
