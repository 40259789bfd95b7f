package ratemodel

// record books a write that the store applied.
func (b *ledger) record(q *write, before, after *item) {
	w := b.world
	i := q.item
	switch q.kind {
	case kindCreate:
		b.forget(i)
		for l := range w.shape.limits {
			lim := w.limitOf(after, i, l)
			b.base[i][l] = lim.room(lim.parts) - lim.amount*lim.parts*q.at
			b.use[i][l] = after[deficit(l)]
		}
		b.count(q, before)
	case kindChange, kindSplit, kindChild, kindRetire, kindAbsorb, kindClear:
		b.reshaped(q, before, after)
		b.restart(i)
	default:
		b.risen(q, before, after)
		b.ended(q, before)
		b.count(q, before)
	}
	b.parts(i)
	b.check(i)
}

// risen compares the rise of v with the purpose of the write.
func (b *ledger) risen(q *write, before, after *item) {
	w := b.world
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
		b.carry(q, l, after)
	}
}

// carry compares the use of a limit with the result of the writes.
func (b *ledger) carry(q *write, l int, after *item) {
	use := &b.use[q.item][l]
	*use = max(*use, q.floor[l]) + q.intent[l]
	if got := after[deficit(l)] + after[carried(l)]; got != *use {
		b.world.fail("%s: the use of limit %d is %d units greater than it was", q.kind, l, got-*use)
	}
}

// ended books the losses of a lease that ends, and all its units if it was reaped.
func (b *ledger) ended(q *write, before *item) {
	w := b.world
	c := q.next
	switch q.kind {
	case kindReturn:
		for l := range w.shape.limits {
			b.lost[q.item][l] += c.lost[l] + c.stock[l]
		}
	case kindReap:
		c = b.find(before[slotID(q.slot)])
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

// count books an operation. A take that is applied twice denies more, and that happens
// only if another take took the place of its id. A charge, a refund or an exact write
// may not be applied twice.
func (b *ledger) count(q *write, before *item) {
	w := b.world
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
		w.events.charge(q.item, op.at, l, op.charged[l], w.commits)
		switch op.kind {
		case kindCharge:
			w.events.charge(q.item, op.at, l, op.tokens[l], w.commits)
		case kindRefund:
			w.events.refund(op, l)
		default:
		}
	}
}
