package ratemodel

// ledger follows each token on both sides: nothing is made, and nothing is lost but
// for a counted cause. For each item and limit the units of the centre and of the
// holders, reckoned back to time zero without any room, are conserved. Takes, charges,
// refunds and counted losses alone change them.
type ledger struct {
	base  [maxItems][maxLimits]int64
	spent [maxItems][maxLimits]int64
	lost  [maxItems][maxLimits]int64 // refill of a full centre, lifts, dead leases
}

// find is the candidate with an id, of a live or a crashed holder.
func (w *world) find(id int64) *candidate {
	for _, r := range w.reps {
		for _, h := range r.holders {
			if c := h.find(id); c != nil {
				return c
			}
		}
	}
	for _, h := range w.dead {
		if c := h.find(id); c != nil {
			return c
		}
	}
	return nil
}

func (h *holder) find(id int64) *candidate {
	if h == nil {
		return nil
	}
	for _, c := range h.cands {
		if c.id == id {
			return c
		}
	}
	return nil
}

// conserved is the sum that a write may change by its own tokens alone.
func (b *ledger) conserved(w *world, i, l int) int64 {
	it := &w.items[i]
	lim := w.limitOf(it, i, l)
	sum := lim.room(it[attrRoom]) - it[deficit(l)] + lim.amount*it[attrLine] + b.lost[i][l]
	for s := range maxSlots {
		id := it[slotID(s)]
		if id == 0 {
			continue
		}
		c := w.find(id)
		if c == nil {
			w.fail("slot %d of item %d has no holder", s, i)
			continue
		}
		sum += c.stock[l] + c.lost[l] - c.limits[l].amount*c.granted*c.at
	}
	return sum
}

// check compares both sides.
func (b *ledger) check(w *world, i int) {
	if w.items[i][attrCreated] == 0 {
		return
	}
	for l := range w.shape.limits {
		got, want := b.conserved(w, i, l), b.base[i][l]-b.spent[i][l]
		if got > want {
			w.fail("item %d limit %d: %d units came from nowhere", i, l, got-want)
		}
		if got < want {
			w.fail("item %d limit %d: %d units are lost without a cause", i, l, want-got)
		}
	}
}

// restart takes the state as it is for the start of the next account.
func (b *ledger) restart(w *world, i int) {
	for l := range w.shape.limits {
		b.spent[i][l] = 0
		b.base[i][l] = b.conserved(w, i, l)
	}
}

// local books units that a lease gave to a request or a charge.
func (b *ledger) local(w *world, h *holder, i, l int, units int64) {
	if h.find(w.items[i][slotID(h.slot)]) != nil {
		b.spent[i][l] += units
	}
}

// record books a write that the store applied.
func (b *ledger) record(w *world, q *write, before, after *item) {
	i := q.item
	switch q.kind {
	case kindCreate:
		for l := range w.shape.limits {
			lim := w.limitOf(after, i, l)
			b.base[i][l] = lim.room(lim.parts) - lim.amount*lim.parts*q.at
		}
		b.count(w, q)
	case kindChange, kindSplit, kindChild, kindRetire, kindAbsorb, kindClear:
		b.reshaped(w, q, before, after)
		b.restart(w, i)
	default:
		b.risen(w, q, before, after)
		b.ended(w, q, before)
		b.count(w, q)
	}
	b.parts(w, i)
	b.check(w, i)
}

// risen compares the rise of v with the purpose of the write.
func (b *ledger) risen(w *world, q *write, before, after *item) {
	for l := range w.shape.limits {
		v := deficit(l)
		loss := after[v] - before[v] - q.intent[l]
		allowed := max(0, q.floor[l]-before[v])
		switch {
		case q.floor[l] == noFloor && loss != 0, loss < 0:
			w.fail("%s: v of limit %d rose by %d units less than it should", q.kind, l, -loss)
		case loss > allowed && q.floor[l] != noFloor:
			w.fail("%s: v of limit %d rose by %d units too many", q.kind, l, loss-allowed)
		}
		b.lost[q.item][l] += loss
		full := w.limitOf(before, q.item, l).refilled(before, q.at)
		if q.intent[l] > 0 && after[v] < full+q.intent[l] {
			w.fail("%s: limit %d has %d units more than a full centre leaves", q.kind, l, full+q.intent[l]-after[v])
		}
		if q.kind == kindLease && q.intent[l] < 0 && q.seen[l] == before[v] {
			b.moved(w, q, l, before, after)
		}
	}
}

// moved checks that room moves with its tokens: a full centre without room for more
// would lose them.
func (b *ledger) moved(w *world, q *write, l int, before, after *item) {
	refilled := w.limitOf(before, q.item, l).refilled(before, q.at)
	if after[deficit(l)] < min(refilled, before[deficit(l)]) {
		w.fail("%s: room of limit %d moves without its tokens", q.kind, l)
	}
}

// ended books the losses of a lease that ends, and all its units if it was reaped.
func (b *ledger) ended(w *world, q *write, before *item) {
	c := q.next
	switch q.kind {
	case kindReturn:
		for l := range w.shape.limits {
			b.lost[q.item][l] += c.lost[l] + c.stock[l]
		}
	case kindReap:
		c = w.find(before[slotID(q.slot)])
		if c == nil {
			return
		}
		for l := range w.shape.limits {
			had := c.stock[l] + c.limits[l].amount*c.granted*(q.at-c.at)
			b.lost[q.item][l] += c.lost[l] + had
		}
	default:
	}
}

// count books an operation. A take that lands twice denies more; a charge or a
// refund may not.
func (b *ledger) count(w *world, q *write) {
	op := q.op
	if op == nil {
		return
	}
	op.commits++
	for l := range w.shape.limits {
		b.spent[q.item][l] += q.intent[l]
	}
	if op.commits > 1 {
		w.stats.Doubled++
		if q.kind == kindCharge || q.kind == kindRefund {
			w.fail("%s lands twice", q.kind)
		}
		return
	}
	op.commit = w.commits
	for l := range w.shape.limits {
		switch q.kind {
		case kindCharge:
			w.charged(op.at, l, op.tokens[l])
		case kindRefund:
			w.refunded(op, l)
		default:
		}
	}
}

// parts checks that rate and room are whole.
func (b *ledger) parts(w *world, i int) {
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

// reshaped checks that a change of the limits or of the shards keeps the tokens.
func (b *ledger) reshaped(w *world, q *write, before, after *item) {
	i := q.item
	switch q.kind {
	case kindChange, kindSplit, kindRetire, kindAbsorb:
		if !isAlone(before, w.shape.parts) {
			w.fail("%s: parts are leased under the limits of before", q.kind)
		}
		if q.kind == kindAbsorb && q.at < w.items[1][attrMoveAt] {
			w.fail("%s: both shards refill from %d to %d", q.kind, q.at, w.items[1][attrMoveAt])
		}
	default:
	}
	for l := range w.shape.limits {
		has := w.limitOf(after, i, l).tokens(after, l, q.at)
		had := w.limitOf(before, i, l).tokens(before, l, q.at)
		switch q.kind {
		case kindChange:
			old, lim := w.limits[before[attrVersion]][l], w.limits[after[attrVersion]][l]
			had = min(old.convert(had, lim), lim.room(w.shape.parts))
		case kindSplit:
			had = 2*had - after[moved(l)]
		case kindChild:
			had = w.items[0][moved(l)]
		case kindRetire:
			has = after[moved(l)]
		case kindAbsorb:
			if w.items[1][attrRetired] == 0 {
				w.fail("a live shard is absorbed")
			}
			had = w.limits[after[attrVersion]][l].sum(had, absorbed(w, &w.items[1], l, q.at))
		default:
		}
		if has != had {
			w.fail("%s: limit %d has %d units, and should have %d", q.kind, l, has, had)
		}
	}
	w.stats.Reshaped++
	if q.kind == kindChange {
		w.changedAt(q.at, after[attrVersion])
	}
}
