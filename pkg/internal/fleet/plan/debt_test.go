package plan_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestDebtIsMerged: the debt of a shard that is merged is that of the bucket from then on.
func TestDebtIsMerged(t *testing.T) {
	b := newBench(t)
	b.land(b.must(plan.Split(b.state, epoch, 1)))
	other, err := plan.Make(b.state)
	if err != nil {
		t.Fatal(err)
	}
	b.land(b.must(plan.Clear(b.state, 1)))
	own := plan.At(b.state, epoch).Tokens(0, epoch)
	other = b.spendOn(other, 0, 2, limiter.Spend{Charge: 7000}).After()
	debt := plan.At(other, epoch).Tokens(0, epoch)
	if debt >= 0 {
		t.Fatalf("the other shard has %d millitokens, want debt", debt)
	}
	retired := b.must(plan.Retire(other, epoch, 1)).After()
	b.land(b.must(plan.Absorb(b.state, retired, epoch, 1)))
	if got := plan.At(b.state, epoch).Tokens(0, epoch); got != own+debt {
		t.Errorf("the bucket has %d millitokens, want %d and %d", got, own, debt)
	}
}

// TestAnAdjustedItemIsKept: the ttl that an adjustment leaves covers the debt of takes and charges that may
// be applied before it.
func TestAnAdjustedItemIsKept(t *testing.T) {
	b := daily(t)
	changes, err := plan.Adjust([]*schema.Bucket{b.state}, epoch, &limiter.Adjustment{Limit: "l", Kind: limiter.AdjustReset}, wisher, false)
	if err != nil {
		t.Fatal(err)
	}
	of := &b.state.Balances[0]
	full := float64(of.Share.Capacity-of.Floor) / 1000 // hours: one token each
	if got := float64(changes[0].After().TTL-epoch/1000) / hour; got < full {
		t.Errorf("the item is kept for %g hours, want the %g from the debt floor", got, full)
	}
}

// TestNoAdjustmentIsBeforeTheItem: an adjustment is not applied to an item that was changed at a later
// time.
func TestNoAdjustmentIsBeforeTheItem(t *testing.T) {
	for name, later := range map[string]int64{"at its time": 0, "later": 1000} {
		t.Run(name, func(t *testing.T) {
			b := daily(t)
			reset := &limiter.Adjustment{Limit: "l", Kind: limiter.AdjustReset}
			changes, err := plan.Adjust([]*schema.Bucket{b.state}, epoch, reset, wisher, false)
			if err != nil {
				t.Fatal(err)
			}
			changed := *b.state
			changed.At = epoch + later
			b.put([]*schema.Bucket{&changed})
			if applied := b.transact(changes); applied != (later == 0) {
				t.Errorf("an adjustment of an item that was changed %d ms later: applied %t", later, applied)
			}
		})
	}
}
