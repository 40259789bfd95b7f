//go:build !race

package plan_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestAllocationsOfATake: a stage, its limits and its results are all that is allocated.
func TestAllocationsOfATake(t *testing.T) {
	limits := limitsOf(t, limiter.PerSecond("rps", 1_000_000), limiter.PerDay("rpd", 1_000_000))
	state := takes(t, schema.NewBucket(limits, 1, epoch), epoch, plan.Options{}, plan.ID{Write: "1"}, limiter.Spend{Limit: "rps", Take: 1}).After()
	_, r := op(t, limits, 1, limiter.Spend{Limit: "rps", Take: 1}, limiter.Spend{Limit: "rpd", Take: 1})
	var st *plan.Stage
	if got := testing.AllocsPerRun(100, func() {
		st = plan.NewStage(state, epoch+1, plan.Options{})
		st.Weigh(r)
		st.Apply(r)
	}); got != 3 {
		t.Errorf("%v allocations, want 3", got)
	}
	if got := testing.AllocsPerRun(100, func() { st.Weigh(r) }); got != 0 {
		t.Errorf("%v allocations of Weigh, want 0", got)
	}
}
