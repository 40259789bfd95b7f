package engine

import (
	"math"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// held is the balance of a limit in a shard at the time of a call.
type held struct {
	tokenbucket.Bucket
	params tokenbucket.Params // of its share
}

// has returns the tokens that a leaf has of a goal's limit, by stateOf.
func (b *Branch) has(l *Leaf, i int) int64 {
	at, ok := b.stateOf(l, i)
	if !ok {
		return 0
	}
	return max(at.Tokens, 0)
}

// stateOf returns the balance of a goal's limit in a leaf at the call's time. It is the one
// that the leaf answered, else the last one seen, else all of its share. It is false where
// the limit is unlimited.
func (b *Branch) stateOf(l *Leaf, i int) (held, bool) {
	j := b.limits.Find(b.op.Spends[i].Limit)
	if j < 0 || b.limits.Unlimited(j) {
		return held{}, false
	}
	share := l.Share(b.limits.Params(j))
	if told := b.answer(l.Index); told != nil && told.Spends[i].Held {
		return held{told.Spends[i].Left.Refill(share, b.now), share}, true
	}
	if l.State != nil && l.State.Version.Hash == b.limits.Hash() {
		at := plan.At(l.State, b.now)
		centre := at.Centre[j].Refill(at.Params[j], b.now)
		if centre.Extra() == 0 {
			centre.Tokens = min(centre.Tokens, share.Capacity)
		}
		return held{tokenbucket.Bucket{Tokens: centre.Tokens, Refilled: b.now, Carried: min(centre.Carried, 0)}, share}, true
	}
	return held{tokenbucket.Full(share, b.now), share}, true
}

// Report fills in the results of the op that limiter.Store promises. stands says that its
// takes stand.
func (b *Branch) Report(op *limiter.Op, stands bool, now func() time.Time) {
	op.Shard = b.place()
	if b.tree == nil {
		b.parts[0].Request.Report(op, stands)
		return
	}
	leaves := b.tree.Leaves()
	b.tree.First(leaves, now())
	all := make([]together, len(op.Spends))
	lack := false // of some limit there is too little in all shards
	for i := range all {
		all[i] = b.together(i, leaves, stands)
		lack = lack || all[i].lacks
	}
	for i := range all {
		b.reportSpend(&op.Spends[i], i, &all[i], lack)
	}
}

// together is the balance of a spend's limit in all shards.
type together struct {
	under  *limiter.Limits // that they have it in; nil when none has it
	states []held
	back   int64 // takes that do not stand
	sum    int64 // of both
	extra  int64 // the part of it above the capacity
	lacks  bool  // the spend's goal was not met, and this is less than it needs
}

func (b *Branch) together(i int, leaves []Leaf, stands bool) together {
	var t together
	for _, p := range b.parts {
		if sp := &p.Request.Spends[i]; p.Err == nil && sp.Held {
			t.under = p.Request.Under
			if !stands && p.Request.Admitted {
				t.back += sp.Back
			}
		}
	}
	t.sum = t.back
	for j := range leaves {
		if at, ok := b.stateOf(&leaves[j], i); ok {
			t.states = append(t.states, at)
			t.sum += at.Tokens
			t.extra += at.Extra()
		}
	}
	t.lacks = t.under != nil && !b.goals[i].met() && t.sum < b.op.Spends[i].Need
	return t
}

// place returns the shard that the op went to and 1, 0 for several.
func (b *Branch) place() int {
	index, n := 0, 0
	for _, p := range b.parts {
		if p.Err == nil && p.Request.Admitted && (len(b.parts) == 1 || p.Request.Takes()) {
			index, n = p.Index, n+1
		}
	}
	if n != 1 {
		return 0
	}
	return index + 1
}

// reportSpend fills in the results of a spend that limiter.Store promises. A spend that did
// not get its need is exceeded in two cases. The shards have too little of it together, or
// they did not give it although no limit lacks. Else another limit or bucket denied.
func (b *Branch) reportSpend(sp *limiter.Spend, i int, there *together, lack bool) {
	sp.Held = there.under != nil
	sp.Limits, sp.Index, sp.Bucket = nil, 0, tokenbucket.Bucket{}
	sp.Exceeded = false
	if there.under == nil {
		return
	}
	sp.Limits, sp.Index = there.under, there.under.Find(sp.Limit)
	sp.Exceeded = there.lacks || !b.goals[i].met() && b.over && !lack
	need, whole := b.op.Spends[i].Need, there.under.Params(sp.Index)
	extra := min(there.extra, max(there.sum-whole.Capacity, 0))
	sp.Bucket = tokenbucket.Bucket{Tokens: min(there.sum, whole.Capacity+extra), Refilled: b.now, Carried: -extra}
	if sp.Exceeded && need <= whole.Capacity {
		sp.Bucket = lacking(whole, need, untilThere(there.states, need-there.back, b.now))
		sp.Bucket.Refilled = b.now
	}
}

// untilThere returns how long it takes from now, in ms, until the shards together have need
// millitokens, at most tokenbucket.Forever: each is refilled on its own, to its own share.
func untilThere(states []held, need, now int64) int64 {
	after := func(ms int64) bool {
		sum := int64(0)
		for i := range states {
			sum += states[i].Available(states[i].params, now+ms)
		}
		return sum >= need
	}
	low, high := int64(0), int64(1) // not before low, by high
	for !after(high) {
		low, high = high, 2*high
		if high >= tokenbucket.Forever {
			return tokenbucket.Forever
		}
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; after(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// lacking returns the state of a bucket in which need is there after exactly ms.
func lacking(p tokenbucket.Params, need, ms int64) tokenbucket.Bucket {
	grown := tokenbucket.Bucket{Tokens: -tokenbucket.MaxAmount}.Refill(p, ms)
	due, remainder := grown.Tokens+tokenbucket.MaxAmount, grown.Remainder
	if remainder > 0 {
		due, remainder = due+1, p.Period-remainder
	}
	return tokenbucket.Bucket{Tokens: max(need-due, math.MinInt64/2), Remainder: remainder}
}
