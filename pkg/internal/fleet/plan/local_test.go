package plan_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// TestWritesOnDynamoDBLocal: DynamoDB accepts each kind of write, and leaves the planned
// state.
func TestWritesOnDynamoDBLocal(t *testing.T) {
	b := &bench{T: t, world: newWorldOf(t, dynamotest.Start(t).Client(t))}
	land := func(w *plan.Write) {
		t.Helper()
		b.land(w)
		b.sameState(w.After(), b.state)
	}
	land(takes(t, schema.NewBucket(limitsOf(t, limiter.PerSecond("l", 10)), 1, epoch), epoch, plan.Options{}, b.id(1), limiter.Spend{Limit: "l", Take: 1000}))
	busy := b.spend(50, 2, limiter.Spend{Take: 1000})
	land(busy)
	b.refused(busy)
	land(b.spend(5000, 2, limiter.Spend{Take: 1000}))
	land(b.spend(5000, 2, limiter.Spend{Charge: 20_000}))
	land(b.spend(5000, 2, limiter.Spend{Refund: 20_000}))
	land(b.spend(5000, 2, limiter.Spend{Charge: 1_000_000}))
	land(b.raise(3))
	late := b.spend(9000, 3, limiter.Spend{Refund: 1})
	land(b.lease(30_000, 2, 400, 300, 3000))
	b.refused(late)
	land(b.lease(31_000, 2, 0, 0, -3000))
	land(b.bring(32_000))
	land(b.must(plan.Split(b.state, epoch+33_000, 1)))
	other, err := plan.Make(b.state)
	if err != nil {
		t.Fatal(err)
	}
	if !b.made(other) || b.made(other) {
		t.Error("the other half was not made once")
	}
	land(b.must(plan.Clear(b.state, 1)))
	retire := b.must(plan.Retire(other, epoch+33_000, 1))
	if landed, image := b.send(retire, 1); !landed || !image.Shard.Retired {
		t.Error("the other half was not retired")
	}
	land(b.must(plan.Absorb(b.state, retire.After(), epoch+34_000, 1)))
}
