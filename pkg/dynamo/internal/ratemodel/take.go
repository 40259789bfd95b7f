package ratemodel

// plan starts a commuting write on an item by the state that is known of it.
func (r *replica) plan(k kind, i int) *write {
	w := &write{kind: k, item: i, at: r.clock(), id: r.world.newID(), slot: -1}
	for l := range w.floor {
		w.floor[l] = noFloor
	}
	if r.world.removed != EpochPinned {
		w.require(attrEpoch, equal, r.seen[i][attrEpoch])
	}
	return w
}

// rise lets v rise by x from its floor: SET if v is seen below the bound, else ADD.
// The bound is R(t) and the lift, the floor is the start of SET.
func (w *write) rise(g Guard, s *item, l int, refilled, lift, x int64) {
	w.intent[l] = x
	v := deficit(l)
	bound := refilled + lift
	if s[v] < bound || lift == 0 && s[v] == bound {
		w.require(v, atMost, bound)
		w.floor[l] = bound
		if g == LiftToBound {
			bound = refilled
		}
		w.set(v, bound+x)
		return
	}
	if g != BusyFloor {
		w.require(v, atLeast, refilled)
	}
	w.add(v, x)
}

// pick is the item that a request goes to.
func (r *replica) pick() int {
	if r.world.shape.parent && r.world.chance(3) {
		return parentItem
	}
	return r.sharded()
}

// sharded is one of the shards of the bucket that are known to give tokens.
func (r *replica) sharded() int {
	var live [maxShards]int
	n := 0
	for i := range maxShards {
		if r.seen[i].live() {
			live[n] = i
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return live[r.world.rng.IntN(n)]
}

// request is a number of tokens for one limit or all.
func (r *replica) request(i int) (tokens [maxLimits]int64) {
	w := r.world
	one := w.rng.IntN(2 * w.shape.limits)
	for l := range tokens {
		if l >= w.shape.limits || one < w.shape.limits && l != one {
			continue
		}
		tokens[l] = 1 + w.upTo(1)
		if w.shape.duel {
			tokens[l] = 1
		}
		if w.chance(4) {
			tokens[l] = 1 + w.upTo(w.limitOf(&r.seen[i], i, l).capacity-1)
		}
	}
	return tokens
}

// take asks the centre.
func (r *replica) take() {
	i := r.pick()
	op := r.operation(kindTake, i, r.request(i))
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
func (r *replica) takeFor(op *operation) bool {
	w, g := r.world, r.world.removed
	s := &r.seen[op.item]
	if r.carries(op) {
		return r.exactly(op)
	}
	q := r.plan(kindTake, op.item)
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
	r.ask(op, q)
	return true
}

// carries reports whether a take or a charge would lift v where use is carried: that
// use is to be reckoned, and only an exact write can.
func (r *replica) carries(op *operation) bool {
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
func (r *replica) mix(op *operation) {
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
func (r *replica) exactly(op *operation) bool {
	w := r.world
	q := r.exact(kindMixed, op.item, r.clock())
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
	r.ask(op, q)
	return true
}

// create makes the item with its first take; nothing is leased then.
func (r *replica) create() {
	w, parts := r.world, r.world.shape.parts
	op := r.operation(kindTake, 0, r.request(0))
	q := r.exact(kindCreate, 0, op.at)
	q.state[attrCreated], q.state[attrRate], q.state[attrRoom] = 1, parts, parts
	q.state[attrEpoch] = q.at * perMillisecond
	q.state[attrBirth] = q.state[attrEpoch]
	for l := range w.shape.limits {
		lim := w.limitOf(&r.seen[0], 0, l)
		q.intent[l] = lim.units(op.tokens[l])
		q.state[deficit(l)] = lim.amount*parts*q.at + q.intent[l]
	}
	q.state[r.own()] = q.id
	r.ask(op, q)
}

// charge takes tokens that may not be there, from the own lease first.
func (r *replica) charge() {
	i := r.pick()
	if !r.seen[i].live() {
		return
	}
	tokens := r.request(i)
	if h := r.holders[i]; h != nil && h.serves(r) {
		h.charge(r, i, &tokens)
	}
	if tokens != [maxLimits]int64{} {
		r.owed = append(r.owed, r.operation(kindCharge, i, tokens))
	}
	r.pay()
}

func (r *replica) chargeFor(op *operation) {
	w, g := r.world, r.world.removed
	s := &r.seen[op.item]
	if r.carries(op) || w.chance(8) {
		r.exactly(op)
		return
	}
	q := r.plan(kindCharge, op.item)
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
	r.ask(op, q)
}

// refund gives back tokens of an earlier take.
func (r *replica) refund() {
	if last := len(r.given) - 1; last >= 0 {
		r.owed = append(r.owed, r.operation(kindRefund, r.given[last].item, r.given[last].tokens))
		r.given = r.given[:last]
	}
	r.pay()
}

// refundFor bounds no v.
func (r *replica) refundFor(op *operation) {
	w := r.world
	s := &r.seen[op.item]
	q := r.plan(kindRefund, op.item)
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
	r.ask(op, q)
}

// beside is an item of the same bucket that gives tokens.
func (r *replica) beside(i int) int {
	if i == parentItem {
		return i
	}
	return r.sharded()
}
