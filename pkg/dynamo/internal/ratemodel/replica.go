package ratemodel

import "cmp"

// sighting is a lease id and the own monotonic time at which it was first seen.
type sighting struct{ id, mono int64 }

type replica struct {
	world   *world
	n, life int
	seen    [maxItems]item // the newest state that a reply or a read brought
	holders [maxItems]*holder
	slots   [maxItems][maxSlots]sighting
	given   []*operation // admitted takes that a refund may give back
	pending []*operation // asked of the store, without an answer
	owed    []*operation // charges and refunds that are to land
	paying  *operation   // and the one that was sent

	asleep int64 // true time until which nothing runs here
	lag    int64 // the monotonic clock stood still for so long
	wall   int64 // wall clock less true time
	offset int64 // corrected clock less true time, within the skew
	last   int64 // the corrected clock never goes back
}

func (r *replica) mono() int64    { return r.world.now - r.lag }
func (r *replica) wallNow() int64 { return r.world.now + r.wall }

// clock is the corrected clock: within the skew of true time, and never back.
func (r *replica) clock() int64 {
	r.last = max(r.last, r.world.now+r.offset)
	return r.last
}

// slot is the slot of this life of the replica.
func (r *replica) slot() int { return r.n*maxLives + r.life }

// own is the attribute of this replica's write ids. Replicas may share one.
func (r *replica) own() attr {
	if r.world.shape.sharedOwn {
		return attrOwn
	}
	return attrOwn + attr(r.n)
}

// paidSlot is the attribute of this replica's charges and refunds. In the attribute of the
// takes, a late copy of a take would put back the id that a landed charge was pinned to,
// and a copy of the charge could land again.
func (r *replica) paidSlot() attr {
	if r.world.removed == PaidSlot {
		return r.own()
	}
	return r.own() + maxReplicas
}

// idOf is the attribute that the write of an operation sets to its id.
func (r *replica) idOf(k kind) attr {
	if k == kindCharge || k == kindRefund {
		return r.paidSlot()
	}
	return r.own()
}

// newer reports whether a state is of a later time than another one of the same item.
func (it *item) newer(than *item) bool {
	return cmp.Or(cmp.Compare(it[attrEpoch], than[attrEpoch]), cmp.Compare(it[attrCount], than[attrCount])) >= 0
}

// learn takes over a state of an item, unless a newer one is known. An item that is
// absent has no number, and no lease.
func (r *replica) learn(i int, it *item) {
	newer := it.newer(&r.seen[i]) || it[attrCreated] == 0 && r.holders[i] == nil
	if !newer && r.world.removed != NewestState {
		return
	}
	r.seen[i] = *it
	h := r.holders[i]
	if h != nil && h.settle(r, it) {
		r.holders[i] = nil
		r.world.tracef("r%d holds nothing of item %d", r.n, i)
	}
}

// read looks at the items as they are.
func (r *replica) read() {
	for i := range r.world.items {
		it := r.world.items[i]
		r.learn(i, &it)
	}
}

// receive handles a reply. Only the last write of an operation answers it.
func (r *replica) receive(m *message) {
	q := m.write
	if q.next != nil {
		q.next.confirmedAt(r, m.applied)
	}
	r.learn(q.item, &m.image)
	if q.op != nil && q.op.write == q {
		r.answered(q.op, m.applied || m.image[r.idOf(q.op.kind)] == q.id)
	}
}

// crash loses all that is in memory; the slot stays.
func (r *replica) crash() {
	w := r.world
	for _, h := range r.holders {
		if h != nil {
			w.dead = append(w.dead, h)
		}
	}
	*r = replica{world: w, n: r.n, life: r.life + 1, lag: r.lag, wall: r.wall, offset: r.offset}
	r.read()
	w.tracef("r%d crashes", r.n)
}

// sleep stops the replica, and sometimes its monotonic clock.
func (r *replica) sleep() {
	d := r.world.upTo(100)
	r.asleep = r.world.now + d
	if r.wall == 0 && r.world.chance(2) {
		r.lag += d
	}
	r.world.tracef("r%d sleeps %d, lag %d", r.n, d, r.lag)
}

// setBack sets the wall clock back. A replica whose monotonic clock stood still keeps
// a right wall clock: with both wrong nothing tells that a lease is over.
func (r *replica) setBack(most int64) {
	if r.lag == 0 {
		r.wall -= r.world.upTo(most)
	}
}

// disturb moves the clocks: the correction within the skew, the wall clock anywhere.
func (r *replica) disturb() {
	w := r.world
	if w.chance(2) {
		r.offset = w.upTo(2*w.shape.skew) - w.shape.skew
	} else {
		r.setBack(200)
	}
	w.tracef("r%d clocks: offset %d wall %d", r.n, r.offset, r.wall)
}
