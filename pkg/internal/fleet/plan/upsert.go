package plan

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// A replica has no state of a bucket that it never asked for, and plans as if there were no item. Where there is one all
// the same, a server that runs scripts takes from it. A number below R(t) is raised to R(t), since the limit is full at t,
// and then by the take. The result may be at most R(t) + room. This is right in any state under the same limits of which
// nothing is leased. These are the conditions, in the place of an epoch.
//
// A copy finds the id of the first one in its channel. Exact writes may drop ids. All that come after the take are of its
// time or later ones, and after those no copy is applied.

// upserts reports whether the write may take from an item that is there, in the place of its creation.
func (s *Stage) upserts() bool {
	return s.options.Scripts && !s.base.Exists() && s.takes && !s.books && !s.denies && !s.next.Leased() &&
		!slices.ContainsFunc(s.results, func(r result) bool { return r.spend.Ask > 0 }) // rule: a take of what is there needs to see that
}

// stands reports whether a state has all that a commuting write rests on: its epoch, or the conditions in the place of it.
func (w *Write) stands(in *schema.Bucket) bool {
	if !w.upsert {
		return in.Shard.Epoch == w.base.Shard.Epoch
	}
	return in.Version.Hash == w.after.Version.Hash && in.Shard.Level == w.after.Shard.Level && !in.Leased()
}

// orUpdate returns the take from an item that is there.
func (w *Write) orUpdate(k schema.Key) *schema.ItemWrite {
	to, s := schema.NewUpdate(k), w.stage
	to.Require(schema.AttrVersion, "=", schema.NumberAttribute(w.after.Version.Hash)) // rule: a take from an unseen item needs its limits
	to.Require(schema.AttrLevel, "=", schema.NumberAttribute(w.after.Shard.Level))    // rule: a take from an unseen item needs it whole
	to.RequireAbsent(schema.AttrRate)                                                 // rule: a take from an unseen item needs all parts there
	to.Require(schema.AttrAt, "<", schema.NumberAttribute(w.after.At))                // rule: no exact write comes between a take from an unseen item and its copy
	for i := range s.staged {
		s.takeUnseen(to, i)
	}
	w.mark(to)
	none := schema.NumberAttribute(0)
	to.AddAbove(schema.AttrGeneration, schema.NumberAttribute(w.after.Version.Generation), none) // rule: a take from an unseen item lowers no generation
	to.AddAbove(schema.AttrLastTake, schema.NumberAttribute(w.after.Taken), none)
	if ttl := s.ttlOf(w.after, true); ttl == 0 {
		to.RequireAbsent(schema.AttrTTL)
	} else {
		to.RequirePresent(schema.AttrTTL)
		to.AddAbove(schema.AttrTTL, schema.NumberAttribute(ttl), none) // rule: a take from an unseen item raises its ttl
	}
	to.Add(schema.AttrSerial, 1)
	w.count(to)
	return to
}

// takeUnseen adds the takes from a staged limit to that from an unseen item.
func (s *Stage) takeUnseen(to *schema.ItemWrite, index int) {
	st := &s.staged[index]
	m, needed := &st.meter, schema.Units{}
	for i := range s.results {
		if r := &s.results[i]; r.staged == index {
			before := r.v.Sub(m.refilled).Sub(m.units(r.spend.Take))
			if need := before.Add(m.units(r.spend.Need)); need.Cmp(needed) > 0 {
				needed = need
			}
		}
	}
	if needed.Sign() == 0 {
		return
	}
	attr := schema.LimitAttr(st.Limit.Name, schema.LimitFullAt)
	to.Require(attr, "<=", m.refilled.Add(m.room).Sub(needed).Attribute()) // rule: a take from an unseen item has a bound
	to.RequireAbsent(schema.LimitAttr(st.Limit.Name, schema.LimitCarried)) // rule: a take from an unseen item needs a limit without an extra
	if taken := st.taken(); taken.Sign() > 0 {
		to.AddAbove(attr, m.refilled.Attribute(), taken.Attribute()) // rule: a take from an unseen item counts the refill up to its time
	}
}

// taken returns the takes from a limit of a bucket without an item, in units.
func (st *staged) taken() schema.Units { return st.v.Sub(st.meter.refilled) }
