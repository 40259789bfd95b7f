package plan

import (
	"math/big"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Items of form 1, see schema.OldForm, are of replicas of version 1, and of namespaces that
// no operator has brought to form 2. Every write on one is exact, so that the conditions of
// version 1 hold for what it leaves, as they do after a write of version 1:
//
//   - the last refill never moves back;
//   - at the same last refill a balance changes by whole millitokens, and a remainder only to 0;
//   - tokens and what is out on lease are together at most the capacity;
//   - a lease ends 9/8 of a term after it was first seen, or by its holder's own write.

// reform gives the state that a write leaves the form that the namespace asks for.
func (s *Stage) reform(after *schema.Bucket) {
	created := !s.base.Exists() && s.options.Form == 1
	switch {
	case s.base.Old == nil && !created:
	case s.options.Form != 1 && after.Converts():
		convert(after, s.now)
	default:
		s.keepForm(after)
	}
}

// keepForm has a state in form 1, as of the stage's time.
func (s *Stage) keepForm(after *schema.Bucket) {
	old := schema.OldForm{Counted: true, Balances: make(map[string]tokenbucket.Bucket, len(after.Balances))}
	if s.next.Old != nil {
		old.Item, old.Leases = s.next.Old.Item, s.next.Old.Leases
	}
	for i := range after.Balances {
		b := &after.Balances[i]
		old.Balances[b.Limit.Name] = oldBalance(s.base, b, s.now)
	}
	after.Old = &old
	after.Serial = after.Shard.Units + 1
}

// oldBalance returns a limit at now as form 1 has it, of an item that had the state base. A
// part of a millitoken that form 1 has no place for is lost to the bucket.
func oldBalance(base *schema.Bucket, b *schema.Balance, now int64) tokenbucket.Bucket {
	at := now
	if was := base.Any(b.Limit.Name); b.Dormant && was != nil && was.Dormant {
		stored := base.Old.Balances[b.Limit.Name]
		if was.FullAt == b.FullAt && was.Carried == b.Carried && was.Leased == b.Leased {
			return stored
		}
		at = max(at, stored.Refilled)
	}
	bucket := newMeter(b, schema.WholeLine(), at).bucket(number{b.FullAt, b.Carried})
	bucket.Remainder /= schema.Parts
	return bucket
}

// convert brings a state of form 1 into form 2, as of now. Ids of version 1 go: conditions
// on them are those of writes of version 1, which the new epoch ends. Others tell of writes
// whose reply was lost.
func convert(after *schema.Bucket, now int64) {
	if after.Shard.Moving {
		for i := range after.Balances {
			b := &after.Balances[i]
			half := otherHalf(after, b, now)
			b.Moving, b.Aside = half.Tokens, half.Carried
		}
		after.MovedAt = now
	}
	after.Old = nil
	for i := range schema.SlotCount {
		if after.Slots[i][0].Old() {
			after.Slots[i][0] = ""
		}
		if after.Booked[i].Old() {
			after.Booked[i] = ""
		}
	}
}

// Reform brings an item of form 1 into form 2 by the write, where Options.Form and its
// leases allow that, without any request. It reports whether it does.
func (s *Stage) Reform() bool {
	if s.options.Form == 1 || !s.next.Converts() {
		return false
	}
	s.change()
	return true
}

// ReapOld has the write end leases of form 1, before any request is applied. All that they
// have counts as spent. Those whose text has changed are left alone.
func (s *Stage) ReapOld(dead []schema.OldLease) error {
	if s.next.Old == nil || len(dead) == 0 {
		return nil
	}
	gone := func(l schema.OldLease) bool {
		return slices.ContainsFunc(dead, func(d schema.OldLease) bool { return d.Replica == l.Replica && d.Text == l.Text })
	}
	switch {
	case !slices.ContainsFunc(s.next.Old.Leases, gone):
		return nil
	case len(s.results) > 0:
		return ErrOrder
	}
	next := s.change()
	old := *next.Old
	old.Leases = slices.DeleteFunc(slices.Clone(old.Leases), gone)
	for i := range next.Balances {
		b := &next.Balances[i]
		spendOld(b, s.now, next.Old.LeasedOf(b.Limit.Name)-old.LeasedOf(b.Limit.Name))
	}
	next.Old = &old
	s.restage()
	return nil
}

// spendOld takes millitokens at now from those that are out on leases of form 1: the room
// grows by them, and the tokens stay.
func spendOld(b *schema.Balance, now, millitokens int64) {
	if millitokens == 0 {
		return
	}
	m := newMeter(b, schema.WholeLine(), now)
	n := number{b.FullAt, b.Carried}
	if m.full(n) {
		n = number{m.refilled, m.bucket(n).Carried}
	}
	b.FullAt, b.Carried = new(big.Int).Add(n.v, m.units(millitokens)), n.carried
	b.Leased -= millitokens
}

// uncounted returns the attributes of new limits of an item of form 1 that count what is
// consumed, where the write itself counts nothing: readers of version 1 ask for them.
func (w *Write) uncounted() []string {
	if w.after.Old == nil {
		return nil
	}
	var attrs []string
	for i := range w.after.Balances {
		name := w.after.Balances[i].Limit.Name
		counted := slices.ContainsFunc(w.usage, func(u usage) bool { return u.limit == name })
		if !counted && (!w.base.Exists() || w.base.Any(name) == nil) {
			attrs = append(attrs, schema.LimitAttr(name, schema.LimitConsumed))
		}
	}
	return attrs
}

// carryBucket returns the balance of a limit under other numbers. Tokens out on leases of
// form 1 count as if they were there.
func carryBucket(old, to *schema.Balance, now int64) tokenbucket.Bucket {
	whole := bucketAt(old, now)
	whole.Tokens += old.Leased
	whole = whole.Reparameterize(Params(old, schema.WholeLine()), Params(to, schema.WholeLine()), now)
	whole.Tokens -= to.Leased
	return whole
}

// beginEmpty returns the balance of a limit that may have been forgotten with use.
func beginEmpty(b *schema.Bucket, to *schema.Balance, now int64) tokenbucket.Bucket {
	to.Leased = oldLeasedOf(b, to.Limit.Name)
	empty := tokenbucket.Empty(to.Share, b.Use, now)
	empty.Tokens = min(0, to.Share.Capacity-to.Leased)
	return empty
}

// oldLeasedOf returns the millitokens out on leases of form 1 of a limit that the item has
// forgotten.
func oldLeasedOf(b *schema.Bucket, limit string) int64 {
	if b.Old == nil {
		return 0
	}
	return b.Old.LeasedOf(limit)
}
