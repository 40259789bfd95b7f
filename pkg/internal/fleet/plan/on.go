package plan

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// On returns the state that a commuting write leaves if it is applied to another state than
// the one that it was planned from. Like After it is for planning other writes while this
// one is under way. A state that the write does not fit is returned as it is: there it is
// refused.
func (w *Write) On(image *schema.Bucket) *schema.Bucket {
	if image == w.base && !w.exact && !w.turn { // as with each write that no other is under way before
		return w.after
	}
	if !w.fits(image) {
		return image
	}
	next := *image
	next.Balances = slices.Clone(image.Balances)
	for i := range w.forms {
		f := &w.forms[i]
		k := image.Find(f.limit)
		next.Balances[k].FullAt = f.leaves(image.Balances[k].FullAt)
	}
	next.Serial++
	next.Shard.Units += w.units
	next.Taken = max(next.Taken, w.after.Taken)
	if w.after.TTL != w.base.TTL {
		next.TTL = w.after.TTL
	}
	next.Version.Generation = max(next.Version.Generation, w.after.Version.Generation)
	if w.after.Pending != w.base.Pending {
		next.Pending = w.after.Pending
	}
	if w.books {
		next.Booked[w.Slot] = w.Write
	} else {
		next.Slots[w.Slot][w.Channel] = w.Write
	}
	return &next
}

// fits reports whether a commuting write can be applied to a state.
func (w *Write) fits(image *schema.Bucket) bool {
	if w.exact || image.Shard.Epoch != w.base.Shard.Epoch {
		return false
	}
	if w.books && image.Booked[w.Slot] != w.base.Booked[w.Slot] || !w.books && image.Slots[w.Slot][w.Channel] == w.Write {
		return false
	}
	if ttl := w.after.TTL; ttl != w.base.TTL && ttl != 0 && (image.TTL == 0 || image.TTL > ttl) {
		return false
	}
	if g := w.after.Version.Generation; g != w.base.Version.Generation && image.Version.Generation > g {
		return false
	}
	if w.after.Pending != w.base.Pending && image.Pending != w.base.Pending {
		return false
	}
	for i := range w.forms {
		f := &w.forms[i]
		if k := image.Find(f.limit); k < 0 || !f.fits(image.Balances[k].FullAt) {
			return false
		}
	}
	return true
}
