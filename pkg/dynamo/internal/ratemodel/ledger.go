package ratemodel

// ledger follows each token on both sides: nothing is made, and nothing is lost but
// for a counted cause. For each item and limit the units of the centre and of the
// holders, reckoned back to time zero without any room, are conserved. Takes, charges,
// refunds and counted losses alone change them.
type ledger struct {
	base  [maxItems][maxLimits]int64
	spent [maxItems][maxLimits]int64
	lost  [maxItems][maxLimits]int64 // refill of a full centre, lifts, dead leases
	use   [maxItems][maxLimits]int64 // v and the use that is carried
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
		b.use[i][l] = w.items[i][deficit(l)] + w.items[i][carried(l)]
	}
}

// forget ends the account of an item that is gone.
func (b *ledger) forget(i int) {
	b.spent[i], b.lost[i] = [maxLimits]int64{}, [maxLimits]int64{}
}

// local books units that a lease gave to a request or a charge. A hold of a lease that
// was reaped since was counted as spent.
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
		b.forget(i)
		for l := range w.shape.limits {
			lim := w.limitOf(after, i, l)
			b.base[i][l] = lim.room(lim.parts) - lim.amount*lim.parts*q.at
			b.use[i][l] = after[deficit(l)]
		}
		b.count(w, q, before)
	case kindChange, kindSplit, kindChild, kindRetire, kindAbsorb, kindClear:
		b.reshaped(w, q, before, after)
		b.restart(w, i)
	default:
		b.risen(w, q, before, after)
		b.ended(w, q, before)
		b.count(w, q, before)
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
		if q.kind == kindLease && after[v] < min(full, before[v]) {
			w.fail("%s: tokens of limit %d have no room where they go", q.kind, l)
		}
		b.carry(w, q, l, after)
	}
}

// carry compares the use of a limit with what the writes make of it.
func (b *ledger) carry(w *world, q *write, l int, after *item) {
	use := &b.use[q.item][l]
	*use = max(*use, q.floor[l]) + q.intent[l]
	if got := after[deficit(l)] + after[carried(l)]; got != *use {
		w.fail("%s: the use of limit %d is %d units greater than it was", q.kind, l, got-*use)
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

// count books an operation. A take that lands twice denies more, and does so only if
// another take took the place of its id; a charge, a refund or an exact write may not.
func (b *ledger) count(w *world, q *write, before *item) {
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
		if q.kind != kindTake && q.kind != kindCreate || before[q.named] == q.id {
			w.fail("%s lands twice", q.kind)
		}
		return
	}
	op.commit = w.commits
	for l := range w.shape.limits {
		w.charged(q.item, op.at, l, op.charged[l])
		switch op.kind {
		case kindCharge:
			w.charged(q.item, op.at, l, op.tokens[l])
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
		if !before.alone(w.shape.parts) {
			w.fail("%s: parts are leased under the limits of before", q.kind)
		}
	default:
	}
	for l := range w.shape.limits {
		has := w.limitOf(after, i, l).tokens(after, l, q.at)
		if had := b.had(w, q, l, before, after); q.kind == kindRetire && after[moved(l)] != had || q.kind != kindRetire && has != had {
			w.fail("%s: limit %d has %d units, and should have %d", q.kind, l, has, had)
		}
	}
	w.stats.Reshaped++
	if q.kind == kindChange {
		w.changedAt(q.at, after[attrVersion])
	}
}

// had is the units that a limit should have after a change of the limits or of the shards.
func (b *ledger) had(w *world, q *write, l int, before, after *item) int64 {
	had := w.limitOf(before, q.item, l).tokens(before, l, q.at)
	switch q.kind {
	case kindChange:
		return b.moves(w, q, l, before, after)
	case kindSplit:
		return 2*had - after[moved(l)]
	case kindChild:
		return w.heir(q.item)[moved(l)]
	case kindAbsorb:
		other := childOf(q.item, before[attrLevel])
		child := &w.items[other]
		if child[attrRetired] == 0 || child[attrBirth] != before[birthOf(before[attrLevel])] {
			w.fail("a shard is absorbed that is not retired")
		}
		if q.at < child[attrMoveAt] {
			w.fail("%s: both shards refill from %d to %d", q.kind, q.at, child[attrMoveAt])
		}
		return w.limitOf(after, q.item, l).sum(had, absorbed(w, child, other, l, q.at))
	default:
		return had
	}
}

// moves is the units that a limit should have after a change of its numbers, and checks
// the use that it carries.
func (b *ledger) moves(w *world, q *write, l int, before, after *item) int64 {
	old, lim := w.limitOf(before, q.item, l), w.limitOf(after, q.item, l)
	room := lim.room(w.shape.parts)
	was := max(0, b.use[q.item][l]-old.refilled(before, q.at))
	use := -old.convert(-was, lim)
	tokens := min(room, max(room-use, old.convert(old.tokens(before, l, q.at), lim)))
	if got, want := after[carried(l)], tokens+use-room; got != want {
		w.fail("%s: limit %d carries %d units of use, and should carry %d", q.kind, l, got, want)
	}
	return tokens
}
