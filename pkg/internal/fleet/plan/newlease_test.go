package plan_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A lease write of an item that does not exist creates it. The item is as if it had been
// created first, and leased then. Only the first of two such writes is applied.
func TestALeaseOnANewItem(t *testing.T) {
	w := newWorld(t)
	limits := limitsOf(t, limiter.PerSecond("l", 10))
	grant := func(base *schema.Bucket, replica uint32) *plan.Write {
		t.Helper()
		st := plan.NewStage(base, epoch, plan.Options{})
		if err := st.Lease(plan.LeaseWrite{Replica: replica, Lease: &schema.Lease{Sequence: 1, Rate: 300, Room: 400}, Draw: []int64{4000}}); err != nil {
			t.Fatal(err)
		}
		return st.Write(w.id(replica), 1)
	}
	absent := schema.NewBucket(limits, 1, epoch)
	first, second := grant(absent, 1), grant(absent, 2)
	landed, image := w.send(first, 0)
	if !landed || image.Lease(1) == nil || image.Line.Rate != 700 || image.Line.Room != 600 {
		t.Fatalf("the item is %+v, landed %v, want 300 parts of the rate and 400 of the room out", image, landed)
	}
	if got := plan.At(image, epoch).Tokens(0, epoch); got != 6000 {
		t.Errorf("the centre has %d millitokens, want 6000", got)
	}
	if image.Shard.Epoch <= absent.Shard.Epoch {
		t.Error("a take of an item without leases would land")
	}
	landed, image = w.send(second, 0)
	if landed || image.Lease(1) == nil || image.Lease(2) != nil {
		t.Errorf("the second write landed: %v, and left %+v", landed, image.Leases)
	}
}
