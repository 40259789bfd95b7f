package ratemodel

// writer starts and sends the writes of a replica.
type writer struct{ *replica }

// plan starts a commuting write on an item by the state that is known of it.
func (r writer) plan(k kind, i int) *write {
	w := &write{kind: k, item: i, at: r.clock(), id: r.world.newID(), slot: -1}
	for l := range w.floor {
		w.floor[l] = noFloor
	}
	if r.world.removed != EpochPinned {
		w.require(attrEpoch, equal, r.seen[i][attrEpoch])
	}
	return w
}

// An exact write is a function from the state that it was planned from, at the time of
// its plan, to the next state. It sets all that changed. The epoch and the serial number
// n pin it to that state. So no write lies between the two, and it is applied at most
// once.

// exact starts an exact write on an item: the state as it is at the plan.
func (r writer) exact(k kind, i int, at int64) *write {
	w, s := r.world, &r.seen[i]
	q := &write{kind: k, item: i, at: at, id: w.newID(), state: *s, serial: s[attrCount], slot: -1}
	for l := range w.shape.limits {
		q.floor[l] = w.limitOf(s, i, l).refilled(s, at)
		q.state.refill(l, q.floor[l])
	}
	return q
}

// perMillisecond is more than the writes that one item takes in a millisecond.
const perMillisecond = 1000

// sendExact sends the difference to the state that the write was planned from.
func (r writer) sendExact(q *write) {
	g, s := r.world.removed, &r.seen[q.item]
	if q.restructures(g, s) {
		q.state[attrEpoch] = max(q.state[attrEpoch], s[attrEpoch]+1)
	}
	if g != ExactEpoch {
		q.require(attrEpoch, equal, s[attrEpoch])
	}
	if g != pins(q.kind) {
		q.require(attrCount, equal, s[attrCount])
	}
	for a := range attrs {
		if a != attrCount && (q.state[a] != s[a] || s[attrCreated] == 0) {
			q.set(a, q.state[a])
		}
	}
	r.send(q)
}
