package ratemodel

// plan starts a write on an item by the state that is known of it.
func (r *replica) plan(k kind, i int) *write {
	w := &write{kind: k, item: i, at: r.clock(), id: r.world.newID(), slot: -1}
	for l := range w.floor {
		w.floor[l] = noFloor
	}
	s := &r.seen[i]
	w.require(attrCreated, equal, 1)
	if r.world.removed != ChangeVersion {
		w.require(attrVersion, equal, s[attrVersion])
	}
	if r.world.removed != EpochPinned {
		w.require(attrEpoch, equal, s[attrEpoch])
		w.require(attrRetired, equal, 0)
	}
	return w
}

func (w *write) pinLine(s *item) {
	w.require(attrRate, equal, s[attrRate])
	w.require(attrLine, equal, s[attrLine])
}

// pinDeficits pins every v.
func (w *write) pinDeficits(s *item, limits int) {
	for l := range limits {
		w.require(deficit(l), equal, s[deficit(l)])
	}
}

// raise lets v rise by x from its floor: SET if v is seen below the bound, else ADD.
// The bound is R(t) and the lift, the floor is the start of SET.
func (w *write) raise(g Guard, s *item, l int, refilled, lift, x int64) {
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

// sharded is the item that a request goes to.
func (r *replica) sharded() int {
	s := &r.seen[0]
	if s[attrLevel] == 2 && r.seen[1][attrCreated] == 1 && r.seen[1][attrRetired] == 0 {
		return r.world.rng.IntN(2)
	}
	return 0
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

func (r *replica) operation(k kind, i int, tokens [maxLimits]int64) *operation {
	return &operation{kind: k, item: i, tokens: tokens, at: r.clock(), planned: r.world.commits}
}

// take asks the centre.
func (r *replica) take() {
	i := r.sharded()
	if r.seen[i][attrCreated] == 0 {
		r.create()
		return
	}
	r.takeFor(r.operation(kindTake, i, r.request(i)))
}

func (r *replica) takeFor(op *operation) bool {
	w, g := r.world, r.world.removed
	i := op.item
	s := &r.seen[i]
	q := r.plan(op.kind, i)
	q.op, op.at = op, q.at
	for l, n := range op.tokens {
		if n == 0 {
			continue
		}
		lim := w.limitOf(s, i, l)
		x, refilled := lim.units(n), lim.refilled(s, q.at)
		lift := lim.amount * s[attrRate] * w.upTo(3) * int64(w.rng.IntN(2))
		if x+lift > lim.room(s[attrRoom]) {
			lift = 0
		}
		if x > lim.room(s[attrRoom]) && g != TakeBound {
			return false
		}
		q.raise(g, s, l, refilled, lift, x)
		if q.floor[l] == noFloor && g != TakeBound {
			q.require(deficit(l), atMost, refilled+lim.room(s[attrRoom])-x)
		}
	}
	if g != TakeLine {
		q.pinLine(s)
	}
	if g != TakeRoom {
		q.require(attrRoom, atLeast, s[attrRoom])
	}
	q.require(r.own(), differs, q.id)
	q.set(r.own(), q.id)
	w.send(r, q)
	return true
}

// create makes the item with its first take; nothing is leased then.
func (r *replica) create() {
	w := r.world
	op := r.operation(kindCreate, 0, r.request(0))
	q := &write{kind: kindCreate, at: op.at, id: w.newID(), op: op, slot: -1}
	q.require(attrCreated, equal, 0)
	q.set(attrCreated, 1)
	parts := w.shape.parts
	q.set(attrRate, parts)
	q.set(attrRoom, parts)
	for l := range w.shape.limits {
		lim := w.limitOf(&r.seen[0], 0, l)
		q.intent[l] = lim.units(op.tokens[l])
		q.set(deficit(l), lim.amount*parts*q.at+q.intent[l])
	}
	q.set(r.own(), q.id)
	w.send(r, q)
}

// charge takes tokens that may not be there, from the own lease first.
func (r *replica) charge() {
	i := r.sharded()
	if r.seen[i][attrCreated] == 0 {
		return
	}
	tokens := r.request(i)
	if h := r.holders[i]; h != nil && h.serves(r) {
		h.charge(r, &tokens)
	}
	if tokens == [maxLimits]int64{} {
		return
	}
	r.chargeFor(r.operation(kindCharge, i, tokens))
}

func (r *replica) chargeFor(op *operation) {
	w, g := r.world, r.world.removed
	s := &r.seen[op.item]
	q := r.plan(kindCharge, op.item)
	q.op, op.at = op, q.at
	for l := range w.shape.limits {
		lim := w.limitOf(s, op.item, l)
		if op.tokens[l] != 0 {
			q.raise(g, s, l, lim.refilled(s, q.at), 0, lim.units(op.tokens[l]))
		}
	}
	if g != TakeLine {
		q.pinLine(s)
	}
	if g != ChargeOnce {
		q.require(r.paid(), equal, s[r.paid()])
	}
	q.set(r.paid(), q.id)
	w.send(r, q)
}

// refund gives back tokens of an earlier take. It bounds no v, so it pins no line.
func (r *replica) refund() {
	if len(r.given) == 0 {
		return
	}
	last := len(r.given) - 1
	taken := r.given[last]
	r.given = r.given[:last]
	i := r.sharded()
	r.refundFor(r.operation(kindRefund, i, taken.tokens))
}

func (r *replica) refundFor(op *operation) {
	w := r.world
	s := &r.seen[op.item]
	q := r.plan(kindRefund, op.item)
	q.op, op.at = op, q.at
	for l := range w.shape.limits {
		x := w.limitOf(s, op.item, l).units(op.tokens[l])
		q.intent[l] = -x
		q.add(deficit(l), -x)
	}
	if w.removed != RefundOnce {
		q.require(r.paid(), equal, s[r.paid()])
	}
	q.set(r.paid(), q.id)
	w.send(r, q)
}

// again plans a refused charge or refund anew. No copy of the refused write can land:
// it was refused by its own id, its epoch or its line, or it will be.
func (r *replica) again(op *operation) {
	if op.commits > 0 || !r.world.chance(2) {
		return
	}
	next := *op
	next.answered = false
	next.planned = r.world.commits
	next.item = r.sharded()
	if op.kind == kindCharge {
		r.chargeFor(&next)
	} else {
		r.refundFor(&next)
	}
}

// succeed admits a take once.
func (r *replica) succeed(op *operation) {
	if op.answered {
		return
	}
	op.answered = true
	w := r.world
	if op.kind != kindTake && op.kind != kindCreate {
		return
	}
	if h := op.holder; h != nil {
		h.spendHeld(r, op)
	}
	w.stats.Takes++
	for l := range w.shape.limits {
		if n := op.tokens[l] + op.held[l]; n > 0 {
			w.admit(op, l, n)
		}
	}
	r.given = append(r.given, op)
	w.tracef("r%d admits %v+%v at %d", r.n, op.tokens, op.held, op.at)
}

// release ends a take that the centre refused; the tokens that the lease kept stay there.
func (r *replica) release(op *operation) {
	if op.answered {
		return
	}
	op.answered = true
	if h := op.holder; h != nil {
		h.unhold(r, op)
	}
}
