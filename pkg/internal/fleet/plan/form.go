package plan

import "math/big"

// form is how a commuting write changes one limit. Bounds are of the number v that
// the write finds.
type form struct {
	touched bool
	lifted  bool     // v becomes lift + by; else it rises by by
	lift    *big.Int // R(now) + δ
	by      *big.Int // nil = 0
	least   *big.Int // v ≥ it; nil = any. Of a limit that is not lifted
	most    *big.Int // v ≤ it; nil = any
	debt    bool     // a charge may lead below zero
}

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
func (f *form) fits(v *big.Int) bool {
	return (f.least == nil || v.Cmp(f.least) >= 0) && (f.most == nil || v.Cmp(f.most) <= 0)
}

// offset returns by how much the write raises v, so far.
func (f *form) offset() *big.Int {
	if f.by == nil {
		return new(big.Int)
	}
	return f.by
}

// give lowers v. A limit that was lifted was full, and tokens that would not have all
// their room need an exact write.
func (f *form) give(st *staged, millitokens int64) bool {
	if millitokens == 0 {
		return true
	}
	f.touched = true
	f.by = new(big.Int).Sub(f.offset(), st.meter.units(millitokens))
	return !f.lifted || f.by.Sign() >= 0 // rule: a refund beyond a lift is an exact write
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
func (f *form) bound(st *staged, units *big.Int) bool {
	most := new(big.Int).Sub(st.meter.room, units)
	most.Sub(most, f.offset())
	if f.lifted { // its number is lift + by, from any number before
		return most.Cmp(new(big.Int).Sub(f.lift, st.meter.refilled)) >= 0
	}
	most.Add(most, st.meter.refilled)
	if f.most == nil || most.Cmp(f.most) < 0 { // rule: a take has a bound
		f.most = most
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
	f.by = x.Add(x, f.offset())
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
	f.by = new(big.Int).Add(f.offset(), x)
	return true
}

// begin makes sure that v is raised only where the limit is not full: by a bound from below,
// or by a lift. x is taken, in units.
func (f *form) begin(o Options, st *staged, x *big.Int) bool {
	f.touched = true
	if f.lifted || f.least != nil && f.offset().Sign() >= 0 {
		return true
	}
	m := st.meter
	gave := f.offset().Sign() < 0
	if gave && m.full(st.seen) && st.seen.carried == 0 { // it was full: a refund had no room
		f.lifted, f.lift, f.by, f.most = true, m.refilled, nil, m.refilled
		return true
	}
	if gave || !st.lifts(o.Guard) { // R ≤ v as the write has it by now
		least := new(big.Int).Sub(m.refilled, f.offset())
		if f.least == nil || least.Cmp(f.least) > 0 { // rule: a busy write has a floor
			f.least = least
		}
		return true
	}
	if st.seen.carried > 0 { // rule: a lift with carried use is an exact write
		return false
	}
	lift := st.lift(o.Lift, x)
	if f.most != nil && f.most.Cmp(lift) < 0 {
		lift = m.refilled
	}
	f.lifted, f.lift, f.least, f.most = true, lift, nil, lift // rule: a lift has a bound
	return true
}

// lifts reports whether a limit was full, or lacks less than the refill of ms.
func (st *staged) lifts(ms int64) bool {
	guard := st.refillIn(ms)
	return st.seen.v.Cmp(guard.Add(guard, st.meter.refilled)) < 0
}

// lift returns R(now) + δ, with δ in ms: no δ where that leaves no room for x.
func (st *staged) lift(ms int64, x *big.Int) *big.Int {
	delta := st.refillIn(ms)
	if new(big.Int).Add(delta, x).Cmp(st.meter.room) > 0 {
		delta.SetInt64(0)
	}
	return delta.Add(delta, st.meter.refilled)
}

// refillIn returns the refill of the limit in ms, in units.
func (st *staged) refillIn(ms int64) *big.Int {
	n := big.NewInt(ms)
	return n.Mul(n, big.NewInt(st.meter.params.Amount))
}
