package plan

import (
	"math/big"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// Outcome is the result of a write without a reply, by an image of the item.
type Outcome uint8

// The outcomes.
const (
	Open   Outcome = iota // it has not landed, and may yet: the same may be sent again
	Landed                // it has landed
	Dead                  // it has not landed, and never will
	Lost                  // it is not to be told, and it will not land any more
)

// Outcome returns the result of the write by a state of the item that was read after the
// write was sent; nil = there is no item.
func (w *Write) Outcome(image *schema.Bucket) Outcome {
	if image == nil || !image.Exists() {
		if w.Creates() {
			return Open
		}
		return Lost
	}
	own, seen := image.Slots[w.Slot][w.Channel], w.base.Slots[w.Slot][w.Channel]
	if w.exact || w.books {
		own, seen = image.Booked[w.Slot], w.base.Booked[w.Slot]
	}
	open := image.Shard.Epoch == w.base.Shard.Epoch
	if w.exact {
		open = open && image.Serial == w.base.Serial
	}
	switch {
	case w.named && own == w.Write:
		return Landed
	case open && (own == seen || !w.books):
		return Open
	case !w.named:
		return w.leaseOutcome(image)
	case own == seen && own != "": // an absent id of a take may have been dropped
		return Dead
	case own == seen && (w.exact || w.books):
		return Dead
	}
	return Lost
}

// leaseOutcome is Outcome for a write without an id, which does not land any more: the
// sequence of the lease tells.
func (w *Write) leaseOutcome(image *schema.Bucket) Outcome {
	if w.lease == nil {
		return Lost
	}
	switch held := image.Lease(w.lease.Replica); {
	case sameLease(held, w.lease.Lease):
		return Landed
	case sameLease(held, w.lease.Seen):
		return Dead
	}
	return Lost
}

// sameLease reports whether two leases of a replica are the same one, or none.
func sameLease(x, y *schema.Lease) bool {
	return x == nil && y == nil || x != nil && y != nil && x.Sequence == y.Sequence
}

// Settle corrects the results of the write's requests by the state that it left: others may
// have written between the plan and it. A state of another epoch corrects nothing.
func (w *Write) Settle(image *schema.Bucket) {
	if w.exact || w.stage == nil || image.Shard.Epoch != w.base.Shard.Epoch {
		return
	}
	for _, r := range w.stage.results {
		st := &w.stage.staged[r.staged]
		k := image.Find(st.Limit.Name)
		if k < 0 {
			continue
		}
		v := new(big.Int).Sub(image.Balances[k].FullAt, w.after.Balances[st.index].FullAt)
		if v.Add(v, r.leaves).Cmp(r.v) == 0 {
			continue
		}
		before, left := st.meter.bucket(r.number).Tokens, st.left(number{v, r.carried})
		r.spend.Found += left.Tokens - before
		r.spend.Left = left
	}
}
