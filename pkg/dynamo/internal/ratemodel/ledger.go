package ratemodel

// ledger follows each token on both sides: nothing is made, and nothing is lost but
// for a counted cause. For each item and limit the units of the centre and of the
// holders, reckoned back to time zero without any room, are conserved. Takes, charges,
// refunds and counted losses alone change them.
type ledger struct {
	world *world
	base  [maxItems][maxLimits]int64
	spent [maxItems][maxLimits]int64
	lost  [maxItems][maxLimits]int64 // refill of a full centre, lifts, dead leases
	use   [maxItems][maxLimits]int64 // v and the use that is carried
}

// find is the candidate with an id, of a live or a crashed holder.
func (b *ledger) find(id int64) *candidate {
	for _, leases := range b.world.leases {
		for _, h := range leases {
			if c := h.find(id); c != nil {
				return c
			}
		}
	}
	for _, h := range b.world.dead {
		if c := h.find(id); c != nil {
			return c
		}
	}
	return nil
}

// conserved is the sum that a write may change by its own tokens alone.
func (b *ledger) conserved(i, l int) int64 {
	w := b.world
	it := &w.items[i]
	lim := w.limitOf(it, i, l)
	sum := lim.room(it[attrRoom]) - it[deficit(l)] + lim.amount*it[attrLine] + b.lost[i][l]
	for s := range maxSlots {
		id := it[slotID(s)]
		if id == 0 {
			continue
		}
		c := b.find(id)
		if c == nil {
			w.fail("slot %d of item %d has no holder", s, i)
			continue
		}
		sum += c.stock[l] + c.lost[l] - c.limits[l].amount*c.granted*c.at
	}
	return sum
}

// check compares both sides.
func (b *ledger) check(i int) {
	w := b.world
	if w.items[i][attrCreated] == 0 {
		return
	}
	for l := range w.shape.limits {
		got, want := b.conserved(i, l), b.base[i][l]-b.spent[i][l]
		if got > want {
			w.fail("item %d limit %d: %d units came from nowhere", i, l, got-want)
		}
		if got < want {
			w.fail("item %d limit %d: %d units are lost without a cause", i, l, want-got)
		}
	}
}

// restart takes the state as it is for the start of the next account.
func (b *ledger) restart(i int) {
	w := b.world
	for l := range w.shape.limits {
		b.spent[i][l] = 0
		b.base[i][l] = b.conserved(i, l)
		b.use[i][l] = w.items[i][deficit(l)] + w.items[i][carried(l)]
	}
}

// forget ends the account of an item that is gone.
func (b *ledger) forget(i int) {
	b.spent[i], b.lost[i] = [maxLimits]int64{}, [maxLimits]int64{}
}

// local books units that a lease gave to a request or a charge. A hold of a lease that
// was reaped since was counted as spent.
func (b *ledger) local(h *holder, i, l int, units int64) {
	if h.find(b.world.items[i][slotID(h.slot)]) != nil {
		b.spent[i][l] += units
	}
}

// parts checks that rate and room are whole.
func (b *ledger) parts(i int) {
	w := b.world
	it := &w.items[i]
	rate, room := it[attrRate], it[attrRoom]
	for s := range maxSlots {
		rate += it[slotRate(s)]
		room += it[slotRoom(s)]
	}
	whole := w.shape.parts
	if rate != whole || room != whole || it[attrRate] < 0 || it[attrRoom] < 0 {
		w.fail("item %d: the shares are %d parts of the rate and %d of the room, not %d", i, rate, room, whole)
	}
}
