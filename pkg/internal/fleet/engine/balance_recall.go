package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// recallTime is how long leases are waited for. A slot that asks for them does so for
	// 4 s, and an adjustment is to hold within 5 s.
	recallTime = 2 * time.Second
	// recallLeast and recallMost bound the time between two reads of the item meanwhile.
	recallLeast = 5 * time.Millisecond
	recallMost  = 50 * time.Millisecond
	// dismissTime bounds the removal of a slot that asks for leases in vain.
	dismissTime = time.Second
	// dismissTries bounds its tries: other writes can come between.
	dismissTries = 5
	// leaseTries bounds the tries of one write of a slot, each behind a turn but the first.
	leaseTries = 3
)

// wish is the slot by which an adjustment asks for leases.
type wish struct {
	replica  uint32
	sequence uint16
	since    time.Duration // of the adjustment, when it was first written; 0 = it was not
	out      map[int]bool  // the shards that it was written to
}

func newWish(by awsdb.Loop) wish {
	return wish{
		replica:  uint32(by.Draw(1<<32-1)) + 1, // #nosec G115 -- in range
		sequence: uint16(by.Draw(1 << 16)),     // #nosec G115 -- in range
		out:      make(map[int]bool),
	}
}

// over reports whether leases were waited for as long as they are.
func (w *wish) over(passed time.Duration) bool { return w.since > 0 && passed-w.since >= recallTime }

// pauses returns the time until the item is read again: the longer leases were waited for, the longer.
func (w *wish) pauses(passed time.Duration) time.Duration {
	return min(max((passed-w.since)/16, recallLeast), recallMost)
}

// recall asks for the leases of all shards, unless it was done, and waits a moment.
func (t *adjustment) recall(ctx context.Context, leaves []*schema.Bucket) error {
	if t.wish.since == 0 {
		t.wish.since = max(t.passed(), 1)
	}
	for _, b := range leaves {
		if b.Line == schema.WholeLine() || b.Lease(t.wish.replica) != nil {
			continue
		}
		at := max(t.at(), b.Time())
		slot := lease.WishSlot(at, t.wish.sequence)
		t.wish.out[b.Shard.Index] = true
		t.lease(ctx, b, at, &schema.Lease{Replica: t.wish.replica, Sequence: slot.Seq, Demand: slot.Demand, At: slot.At})
	}
	if t.cfg.Loop.Sleep(ctx, t.wish.pauses(t.passed())) != nil {
		return fmt.Errorf("%w: the leases of the bucket were not returned before the call ended; make it again", limiter.ErrUnavailable)
	}
	return nil
}

// lease changes the lease of the wish in a shard; nil removes it. Where other writes come before, it
// asks for a turn. A write that is lost is of no matter: the item is read again.
func (t *adjustment) lease(ctx context.Context, b *schema.Bucket, at int64, to *schema.Lease) {
	for range leaseTries {
		stage := plan.NewStage(b, at, plan.Options{})
		if stage.Lease(plan.LeaseWrite{Replica: t.wish.replica, Seen: b.Lease(t.wish.replica), Lease: to}) != nil {
			return // there is no place for a slot
		}
		sent := t.cfg.Now()
		image, refused := t.send(ctx, stage.Write(plan.ID{}, 1), b)
		switch engine := t.cfg.Engine(); {
		case image == nil || !refused && engine != t.from:
			engine.Changed(t.ns.ID, t.Bucket, b.Shard.Index)
			return
		case !refused:
			engine.Saw(t.ns.ID, t.Bucket, image, sent) // the lane of this process sees it at once
			return
		}
		b = t.turn(ctx, image)
		if b == nil {
			return
		}
	}
}

// turn asks the replicas that write to a shard for a turn. It returns the shard, on which the next write
// is applied; nil where it is not known.
func (t *adjustment) turn(ctx context.Context, b *schema.Bucket) *schema.Bucket {
	t.turns++
	id := plan.ID{Write: schema.NewWriteID(t.wish.replica, t.turns)}
	image, _ := t.send(ctx, plan.Turn(b, id, plan.Hold(t.took), 1, true), b)
	return image
}

// send sends a write to a shard once, and returns the item that its reply shows; nil = it is not known.
func (t *adjustment) send(ctx context.Context, w *plan.Write, b *schema.Bucket) (image *schema.Bucket, refused bool) {
	if w == nil {
		return nil, false
	}
	key, began := t.key(b.Shard.Index), t.cfg.Now()
	left, err := t.cfg.Items.Write(ctx, w.Update(key))
	t.took = t.cfg.Now().Sub(began)
	item, refused := awsdb.ConditionItem(err)
	if err == nil {
		item = left
	}
	if len(item) == 0 {
		return nil, refused
	}
	image, err = schema.ParseBucket(t.cfg.Table, key, item, b.Limits)
	if err != nil {
		return nil, refused
	}
	return image, refused
}

// dismiss removes the slots of the wish that are left. Those that it does not reach other
// replicas free, as they free the leases of a replica that is gone.
func (t *adjustment) dismiss(ctx context.Context) {
	if len(t.wish.out) == 0 {
		return
	}
	ctx, cancel := t.cfg.Loop.Within(context.WithoutCancel(ctx), dismissTime)
	defer cancel()
	for range dismissTries {
		items, err := t.cfg.Buckets.Read(ctx, t.ns.ID, t.Bucket)
		if err != nil {
			return
		}
		left := 0
		for _, index := range slices.Sorted(maps.Keys(t.wish.out)) {
			if b := items[index]; b != nil && b.Lease(t.wish.replica) != nil {
				t.lease(ctx, b, t.at(), nil)
				left++
			}
		}
		if left == 0 {
			return
		}
	}
}
