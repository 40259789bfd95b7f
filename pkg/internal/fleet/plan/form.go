package plan

import "github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"

// form is how a commuting write changes one limit. Bounds are of the number v that
// the write finds.
type form struct {
	touched bool
	above   bool         // v becomes max(v, floor) + by, by 0 or more: neither busy nor lift, where the server can do that
	floor   schema.Units // R(now)
	lifted  bool         // v becomes lift + by; else it rises by by
	lift    schema.Units // R(now) + δ
	by      schema.Units
	least   edge // v ≥ it. Of a limit that is not lifted
	most    edge // v ≤ it
	debt    bool // a charge may lead below zero
}

// edge is a bound of v, where there is one.
type edge struct {
	there bool
	at    schema.Units
}

// edgeAt returns a bound.
func edgeAt(v schema.Units) edge { return edge{there: true, at: v} }

// commutes reports whether a weighed request can be done by a commuting write,
// together with all that was applied.
//
// A request that is denied and has a charge or a refund cannot: no condition says that its
// tokens are still missing.
func (s *Stage) commutes(r *Request) bool {
	if !r.Admitted && r.Books() { // rule: a charge beside a denied take is an exact write
		return false
	}
	for i := range r.Spends {
		if sp := &r.Spends[i]; sp.Held {
			if _, ok := s.join(&s.staged[s.find(sp.Limit)], sp, r.Admitted); !ok {
				return false
			}
		}
	}
	return true
}

// join returns the form of a limit with one more spend, and whether there is one.
func (s *Stage) join(st *staged, sp *Spend, admitted bool) (form, bool) {
	f := st.form
	if st.seen.carried < 0 || st.carried < 0 { // rule: a limit with an extra is written exactly
		return f, sp.Give == 0 && sp.Need == 0 && sp.Take == 0 && sp.Cost == 0
	}
	ok := sp.Above == 0 && f.give(st, sp.Give) // rule: a return of an extra is an exact write
	if admitted {
		ok = ok && f.need(st, sp.Need) && f.take(s.options, st, sp.Take)
	}
	if ok && sp.Cost > 0 {
		n := st.meter.back(st.number, sp.Give, sp.Above)
		if admitted {
			n = st.meter.take(n, sp.Take)
		}
		ok = f.cost(s.options, st, sp, n)
	}
	return f, ok && f.fits(st.seen.v)
}

// fits reports whether the number that was seen is within the bounds.
func (f *form) fits(v schema.Units) bool {
	return (!f.least.there || v.Cmp(f.least.at) >= 0) && (!f.most.there || v.Cmp(f.most.at) <= 0)
}

// give lowers v. A limit that was lifted was full, and tokens that would not have all
// their room need an exact write.
func (f *form) give(st *staged, millitokens int64) bool {
	if millitokens == 0 {
		return true
	}
	f.touched = true
	f.by = f.by.Sub(st.meter.units(millitokens))
	return !f.lifted && !f.above || f.by.Sign() >= 0 // rule: a refund beyond a lift is an exact write
}

// need has the limit hold that many millitokens.
func (f *form) need(st *staged, millitokens int64) bool {
	if millitokens == 0 {
		return true
	}
	f.touched = true
	return f.bound(st, st.meter.units(millitokens))
}

// bound has v, as the write raised it so far, leave that many units of the room.
func (f *form) bound(st *staged, units schema.Units) bool {
	most := st.meter.refilled.Add(st.meter.room).Sub(units).Sub(f.by)
	if f.lifted { // its number is lift + by, from any number before
		return most.Cmp(f.lift) >= 0
	}
	if !f.most.there || most.Cmp(f.most.at) < 0 { // rule: a take has a bound
		f.most = edgeAt(most)
	}
	return true
}

// take raises v by tokens that need found.
func (f *form) take(o Options, st *staged, millitokens int64) bool {
	if millitokens == 0 {
		return true
	}
	x := st.meter.units(millitokens)
	if !f.begin(o, st, x) {
		return false
	}
	f.by = f.by.Add(x)
	return true
}

// cost raises v by a charge to the balance n. It must not come to the debt floor.
func (f *form) cost(o Options, st *staged, sp *Spend, n number) bool {
	x := st.meter.units(sp.Cost)
	if st.meter.charged(n, sp.Cost, st.Floor) != sp.Cost {
		return false
	}
	if !f.begin(o, st, x) {
		return false
	}
	bound := x
	if st.meter.bucket(n).Tokens < sp.Cost {
		f.debt = true
		bound = st.meter.units(st.Floor + sp.Cost)
	}
	if !f.bound(st, bound) { // rule: a charge keeps to the debt floor
		return false
	}
	f.by = f.by.Add(x)
	return true
}

// begin makes sure that v is raised only where the limit is not full: by a bound from below,
// or by a lift. x is taken, in units.
func (f *form) begin(o Options, st *staged, x schema.Units) bool {
	f.touched = true
	if f.lifted || f.above || f.least.there && f.by.Sign() >= 0 {
		return true
	}
	m := &st.meter
	if o.Scripts && f.by.Sign() == 0 && st.seen.carried == 0 { // rule: carried use is no part of a balance above a floor
		f.above, f.floor = true, m.refilled
		return true
	}
	gave := f.by.Sign() < 0
	if gave && m.full(st.seen) && st.seen.carried == 0 { // it was full: a refund had no room
		f.lifted, f.lift, f.by, f.most = true, m.refilled, schema.Units{}, edgeAt(m.refilled)
		return true
	}
	if gave || !st.lifts(o.Guard) { // R ≤ v as the write has it by now
		least := m.refilled.Sub(f.by)
		if !f.least.there || least.Cmp(f.least.at) > 0 { // rule: a busy write has a floor
			f.least = edgeAt(least)
		}
		return true
	}
	if st.seen.carried > 0 { // rule: a lift with carried use is an exact write
		return false
	}
	lift := st.lift(o.Lift, x)
	if f.most.there && f.most.at.Cmp(lift) < 0 {
		lift = m.refilled
	}
	f.lifted, f.lift, f.least, f.most = true, lift, edge{}, edgeAt(lift) // rule: a lift has a bound
	return true
}

// lifts reports whether a limit was full, or lacks less than the refill of ms.
func (st *staged) lifts(ms int64) bool {
	return st.seen.v.Cmp(st.meter.refilled.Add(st.refillIn(ms))) < 0
}

// lift returns R(now) + δ, with δ in ms: no δ where that leaves no room for x.
func (st *staged) lift(ms int64, x schema.Units) schema.Units {
	delta := st.refillIn(ms)
	if delta.Add(x).Cmp(st.meter.room) > 0 {
		return st.meter.refilled
	}
	return st.meter.refilled.Add(delta)
}

// refillIn returns the refill of the limit in ms, in units.
func (st *staged) refillIn(ms int64) schema.Units {
	return schema.Product(ms, st.meter.params.Amount)
}
