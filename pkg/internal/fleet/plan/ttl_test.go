package plan_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const hour = 3600 // seconds

// daily is a bucket of 24 tokens a day, one of which was taken at its epoch.
func daily(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, world: newWorld(t)}
	limits := limitsOf(t, limiter.PerDay("l", 24))
	b.land(takes(t, schema.NewBucket(limits, 1, epoch), epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "l", Take: 1000}))
	return b
}

// ttl is the ttl in hours after the epoch.
func (b *bench) ttl() float64 { return float64(b.state.TTL-epoch/1000) / hour }

// TestAnItemIsKeptUntilItIsFull: the ttl is not before the limits are full from the lowest
// balance that writes at the same time can leave, and an hour.
func TestAnItemIsKeptUntilItIsFull(t *testing.T) {
	b := daily(t)
	if got := b.ttl(); got != 3 { // an hour of refill, one of margin, one of slack
		t.Fatalf("a new item is kept for %g hours, want 3", got)
	}
	refund := b.spend(0, 2, limiter.Spend{Refund: 1})
	b.land(refund)
	if got := b.ttl(); got != 3 {
		t.Errorf("after a refund the item is kept for %g hours, want 3", got)
	}
	b.land(b.spend(0, 2, limiter.Spend{Take: 1000})) // others may take all beside it
	if got := b.ttl(); got != 26 {
		t.Errorf("after a take the item is kept for %g hours, want 26", got)
	}
	b.land(b.spend(600_000, 2, limiter.Spend{Take: 1000}))
	if got := b.ttl(); got != 26 {
		t.Errorf("after a take that the ttl covers the item is kept for %g hours, want 26", got)
	}
	b.land(b.spend(600_000, 2, limiter.Spend{Charge: 30_000})) // others may charge down to the floor
	if got := b.ttl(); got < 266 || got > 267 {
		t.Errorf("after a charge the item is kept for %g hours, want 266 and ten minutes", got)
	}
	late := b.spendOn(refund.After(), 600_001, 4, limiter.Spend{Take: 1000}) // it has not seen any of these
	b.refused(late)
}

// TestATTLIsNotLowered: a write that raises the ttl is not applied to a greater one.
func TestATTLIsNotLowered(t *testing.T) {
	b := &bench{T: t, world: newWorld(t)}
	limits := limitsOf(t, limiter.PerDay("l", 24), limiter.PerSecond("m", 10))
	b.land(takes(t, schema.NewBucket(limits, 1, epoch), epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "m", Take: 1000}))
	late := takes(t, b.state, epoch+3_601_000, plan.Options{}, b.id(2), limiter.Spend{Limit: "m", Take: 1000})
	b.land(takes(t, b.state, epoch+3_601_000, plan.Options{}, b.id(3), limiter.Spend{Limit: "l", Charge: 100_000}))
	b.refused(late)
}

// TestTTLOfWhatIsNotAlone: an item with leases expires once it is full from nothing, and one of
// several shards never. One that holds dormant or forgotten limits expires only once they have no
// use.
func TestTTLOfWhatIsNotAlone(t *testing.T) {
	b := daily(t)
	b.land(b.lease(0, 2, 100, 100, 0))
	if got := b.ttl(); got != 26 {
		t.Errorf("with a lease the item is kept for %g hours, want 26", got)
	}
	b.land(b.lease(0, 2, 0, 0, 0))
	if got := b.ttl(); got != 26 {
		t.Errorf("after a return the item is kept for %g hours, want 26 as before", got)
	}
	change := plan.NewStage(b.state, epoch, plan.Options{})
	if _, err := change.Bring(limitsOf(t, limiter.PerSecond("other", 10)), 9); err != nil {
		t.Fatal(err)
	}
	b.land(change.Write(b.id(1), 1))
	if got := b.ttl(); got < 3 {
		t.Errorf("with a dormant limit the item is kept for %g hours, want 3 at least", got)
	}
	b.land(b.must(plan.Split(b.state, epoch, 1)))
	if b.state.TTL != 0 {
		t.Errorf("one of two shards has ttl %d, want none", b.state.TTL)
	}
	b.land(takes(t, b.state, epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "other", Charge: 1_000_000}))
	if b.state.TTL != 0 {
		t.Errorf("after a charge down to its floor one of two shards has ttl %d, want none", b.state.TTL)
	}
	forgotten := *daily(t).state
	forgotten.Forgotten = schema.Forgotten{Until: epoch + 100*hour*1000, Use: 1}
	w := takes(t, &forgotten, epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "l", Take: 1000})
	if got := float64(w.After().TTL-epoch/1000) / hour; got < 101 {
		t.Errorf("with a forgotten limit the item is kept for %g hours, want 101 at least", got)
	}
}

// TestTheItemsOfAWindow: the items of a window's bucket are kept until 25 hours after its end, whatever
// they hold, and whether there are several.
func TestTheItemsOfAWindow(t *testing.T) {
	b := &bench{T: t, world: newWorld(t)}
	limits := limitsOf(t, limiter.Custom("l", 1000, 0, time.Second))
	const end = epoch/1000 + 7*24*hour
	check := func(after string, got int64) {
		t.Helper()
		if want := int64(end + 25*hour); got != want {
			t.Errorf("after %s the ttl is %d, want %d", after, got, want)
		}
	}
	b.land(takes(t, schema.NewBucket(limits, 1, epoch).In(limiter.Window{Start: epoch / 1000, End: end}), epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "l", Take: 1000}))
	check("a take", b.state.TTL)
	b.state = b.state.In(limiter.Window{Start: epoch / 1000, End: end}) // of its key
	b.land(b.spend(0, 2, limiter.Spend{Charge: 5_000_000}))
	check("a charge", b.state.TTL)
	b.state = b.state.In(limiter.Window{Start: epoch / 1000, End: end})
	w := b.must(plan.Split(b.state, epoch, 1))
	check("a split", w.After().TTL)
	made, err := plan.Make(w.After())
	if err != nil {
		t.Fatal(err)
	}
	check("a split, the other half", made.TTL)
}

// TestSlowLimitsNeverExpire: an item that is not full before the year 10000 has no ttl.
func TestSlowLimitsNeverExpire(t *testing.T) {
	b := &bench{T: t, world: newWorld(t)}
	limits := limitsOf(t, limiter.Custom("l", 1_000_000, 1, 366*24*time.Hour))
	b.land(takes(t, schema.NewBucket(limits, 1, epoch), epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "l", Take: 1000}))
	if b.state.TTL == 0 {
		t.Fatal("an item that is full in a year has no ttl")
	}
	b.land(b.spend(0, 2, limiter.Spend{Take: 1_000_000}))
	if b.state.TTL != 0 {
		t.Errorf("an item that is full in a million years has ttl %d, want none", b.state.TTL)
	}
}
