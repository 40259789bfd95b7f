package plan

import "github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"

// Outcome is the result of a write without a reply, by an image of the item.
type Outcome uint8

// The outcomes.
const (
	Open   Outcome = iota // it is not applied, and may yet be: the same may be sent again
	Landed                // it is applied
	Dead                  // it is not applied, and never will be
	Lost                  // it cannot be found any more, and it will not be applied any more
)

// Outcome returns the outcome of the write, by a state of the item that was read after
// the write was sent. nil = there is no item.
func (w *Write) Outcome(image *schema.Bucket) Outcome {
	if image == nil || !image.Exists() {
		if w.Creates() {
			return Open
		}
		return Lost
	}
	own, seen := image.Slots[w.Slot][w.Channel], w.base.Slots[w.Slot][w.Channel] // rule: the id in its channel tells of a take
	if !w.InChannel() {
		own, seen = image.Booked[w.Slot], w.base.Booked[w.Slot]
	}
	open := image.Shard.Epoch == w.base.Shard.Epoch
	if w.upsert { // it pins no epoch
		open = image.At < w.after.At // rule: a take that may be applied yet is open
	}
	if w.exact && !w.upsert {
		open = open && image.Serial == w.base.Serial
	}
	switch {
	case w.named && own == w.Write:
		return Landed
	case open && (own == seen || !w.books):
		return Open
	case !w.named:
		return w.leaseOutcome(image)
	case w.lease.counts() && w.lease.Seen != nil && sameLease(image.Lease(w.lease.Replica), w.lease.Seen): // another replica may have its slot of ids // rule: the slot tells that a return was not applied
		return Dead
	case own == seen && own != "": // an absent id of a take may have been dropped // rule: an id that is gone tells nothing
		return Dead
	case own == seen && !w.InChannel():
		return Dead
	}
	return Lost
}

// leaseOutcome is Outcome for a write without an id, which cannot be applied any more:
// the sequence of the lease shows it.
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

// Overtaken reports whether writes that commute came before an exact one, as the image shows that
// refused it. Such writes can come before it again and again.
func (w *Write) Overtaken(image *schema.Bucket) bool {
	return w.exact && image != nil && image.Shard.Epoch == w.base.Shard.Epoch // rule: a turn lands beside takes
}

// Settle corrects the results of the write's requests by the state that it left: others may
// have written between the plan and it. A state of another epoch corrects nothing, but for a write that found an item
// which this process had not seen: that must still be as the write needs it.
func (w *Write) Settle(image *schema.Bucket) {
	if w.stage == nil || w.exact && !w.upsert || !w.stands(image) { // rule: a state under other limits corrects nothing
		return
	}
	for _, r := range w.stage.results {
		st := &w.stage.staged[r.staged]
		k := image.Find(st.Limit.Name)
		if k < 0 {
			continue
		}
		from := st.form.from(r.leaves) // rule: a look before a take above a floor counts the same refill
		is := number{image.Balances[k].FullAt.Add(from.Sub(w.after.Balances[st.index].FullAt)), r.carried}
		if w.upsert {
			is.carried = image.Balances[k].Carried
		}
		if is == r.number { // rule: a take is told what others left
			continue
		}
		before, left := st.meter.bucket(r.number).Tokens, st.left(is)
		r.spend.Found += left.Tokens - before
		r.spend.Left = left
	}
}

// Overfilled returns how many of the millitokens that the write gave a shard has no room for, as the
// state that it left shows. The shard was split since they were taken, and has half of its room
// then. Or leases have that room, and other tokens. An exact write leaves no state above the room.
func (w *Write) Overfilled(image *schema.Bucket) (sum int64) {
	if w.stage != nil && w.exact {
		return w.stage.over // rule: what an exact write has no room for is counted
	}
	if w.stage == nil || !image.Shard.Sharded() && !image.Leased() || image.Shard.Epoch != w.base.Shard.Epoch { // rule: what a leased item has no room for is counted
		return 0
	}
	for i := range w.after.Balances {
		after := &w.after.Balances[i]
		was, is := w.base.Find(after.Limit.Name), image.Find(after.Limit.Name)
		if was < 0 || is < 0 || after.FullAt.Cmp(w.base.Balances[was].FullAt) >= 0 {
			continue
		}
		unit := after.Share.Period * schema.Parts
		gave, _ := w.base.Balances[was].FullAt.Sub(after.FullAt).DivMod(unit)
		above, _ := image.Balances[is].Refilled(image.LineOf(&image.Balances[is]), w.stage.now).Sub(image.Balances[is].FullAt).DivMod(unit)
		if above > 0 { // rule: what a shard has no room for is counted
			sum += min(gave, above)
		}
	}
	return sum
}
