package plan

import (
	"math/big"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// On returns the state that a commuting write leaves if it lands on another state than the
// one that it was planned from. Like After it is for planning other writes while this one
// is under way. On a state of another epoch it never lands: that is returned as it is.
func (w *Write) On(state *schema.Bucket) *schema.Bucket {
	if state.Shard.Epoch != w.base.Shard.Epoch {
		return state
	}
	after := *state
	after.Serial++
	if w.books {
		after.Booked[w.Slot] = w.Write
	} else {
		after.Slots[w.Slot] = w.Write
	}
	after.Taken = max(after.Taken, w.after.Taken)
	after.Balances = slices.Clone(state.Balances)
	for i := range w.forms {
		f := &w.forms[i]
		if k := state.Find(f.limit); k >= 0 {
			after.Balances[k].FullAt = f.lands(state.Balances[k].FullAt)
		}
	}
	return &after
}

// lands returns the number that a commuting write makes of v, or would if a lift passed
// its bound.
func (f *form) lands(v *big.Int) *big.Int {
	n := f.leaves(v)
	if raised := new(big.Int).Add(v, f.offset()); f.lifted && n.Cmp(raised) < 0 {
		return raised
	}
	return n
}
