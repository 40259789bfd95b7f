package ratemodel

// taker plans takes, charges and refunds.
type taker struct{ *replica }

// take asks the centre.
func (r taker) take() {
	i := r.pick()
	op := caller(r).operation(kindTake, i, r.request(i))
	switch {
	case !r.seen[i].live():
		r.create()
	case r.world.chance(8):
		r.mix(op)
		r.exactly(op)
	default:
		r.takeFor(op)
	}
}

// takeFor plans a take as a commuting write, or as an exact one where it cannot be.
func (r taker) takeFor(op *operation) bool {
	w, g := r.world, r.world.removed
	s := &r.seen[op.item]
	if r.carries(op) {
		return r.exactly(op)
	}
	q := writer(r).plan(kindTake, op.item)
	for l, n := range op.tokens {
		if n == 0 {
			continue
		}
		lim := w.limitOf(s, op.item, l)
		x, refilled := lim.units(n), lim.refilled(s, q.at)
		lift := lim.amount * s[attrRate] * w.upTo(3) * int64(w.rng.IntN(2))
		if x+lift > lim.room(s[attrRoom]) {
			lift = 0
		}
		if x > lim.room(s[attrRoom]) && g != TakeBound {
			return false
		}
		q.rise(g, s, l, refilled, lift, x)
		if q.floor[l] == noFloor && g != TakeBound {
			q.require(deficit(l), atMost, refilled+lim.room(s[attrRoom])-x)
		}
	}
	if g != TakeOnce {
		q.require(r.own(), differs, q.id)
	}
	q.set(r.own(), q.id)
	caller(r).ask(op, q)
	return true
}

// carries reports whether a take or a charge would lift v where use is carried: that
// use is to be reckoned, and only an exact write can.
func (r taker) carries(op *operation) bool {
	s := &r.seen[op.item]
	if r.world.removed == CarriedExact {
		return false
	}
	for l := range r.world.shape.limits {
		lim := r.world.limitOf(s, op.item, l)
		if op.tokens[l] > 0 && s[carried(l)] > 0 && s[deficit(l)] <= lim.refilled(s, r.clock())+3*lim.amount*s[attrRate] {
			return true
		}
	}
	return false
}

// mix adds a charge of the limits that a request takes nothing of.
func (r taker) mix(op *operation) {
	if !r.world.shape.charge {
		return
	}
	for l := range r.world.shape.limits {
		if op.tokens[l] == 0 {
			op.charged[l] = 1 + r.world.upTo(3)
		}
	}
}

// exactly plans a take, a charge or both as an exact write.
func (r taker) exactly(op *operation) bool {
	w := r.world
	q := writer(r).exact(kindMixed, op.item, r.clock())
	for l := range w.shape.limits {
		lim := w.limitOf(&r.seen[op.item], op.item, l)
		x := lim.units(op.tokens[l])
		if op.kind == kindTake && x > lim.tokens(&q.state, l, q.at) && x > 0 {
			return false
		}
		q.raise(l, x+lim.units(op.charged[l]))
	}
	id := r.own()
	if op.kind == kindCharge {
		id, q.id = r.paidSlot(), op.id
	}
	q.state[id] = q.id
	caller(r).ask(op, q)
	return true
}

// create makes the item with its first take; nothing is leased then.
func (r taker) create() {
	w, parts := r.world, r.world.shape.parts
	op := caller(r).operation(kindTake, 0, r.request(0))
	q := writer(r).exact(kindCreate, 0, op.at)
	q.state[attrCreated], q.state[attrRate], q.state[attrRoom] = 1, parts, parts
	q.state[attrEpoch] = q.at * perMillisecond
	q.state[attrBirth] = q.state[attrEpoch]
	for l := range w.shape.limits {
		lim := w.limitOf(&r.seen[0], 0, l)
		q.intent[l] = lim.units(op.tokens[l])
		q.state[deficit(l)] = lim.amount*parts*q.at + q.intent[l]
	}
	q.state[r.own()] = q.id
	caller(r).ask(op, q)
}

func (r taker) chargeFor(op *operation) {
	w, g := r.world, r.world.removed
	s := &r.seen[op.item]
	if r.carries(op) || w.chance(8) {
		r.exactly(op)
		return
	}
	q := writer(r).plan(kindCharge, op.item)
	q.id = op.id
	for l := range w.shape.limits {
		lim := w.limitOf(s, op.item, l)
		if op.tokens[l] != 0 {
			q.rise(g, s, l, lim.refilled(s, q.at), 0, lim.units(op.tokens[l]))
		}
	}
	if g != ChargeOnce {
		q.require(r.paidSlot(), equal, s[r.paidSlot()])
	}
	q.set(r.paidSlot(), q.id)
	caller(r).ask(op, q)
}

// refundFor bounds no v.
func (r taker) refundFor(op *operation) {
	w := r.world
	s := &r.seen[op.item]
	q := writer(r).plan(kindRefund, op.item)
	q.id = op.id
	for l := range w.shape.limits {
		x := w.limitOf(s, op.item, l).units(op.tokens[l])
		q.intent[l] = -x
		q.add(deficit(l), -x)
	}
	if w.removed != RefundOnce {
		q.require(r.paidSlot(), equal, s[r.paidSlot()])
	}
	q.set(r.paidSlot(), q.id)
	caller(r).ask(op, q)
}
