package ratemodel

// sighting is a lease id and the own monotonic time at which it was first seen.
type sighting struct{ id, mono int64 }

// replica is the state of one replica. Its duties are types of their own on it: requester,
// taker, payer, leaser, reaper, shaper and changer plan writes, caller and writer send them,
// server serves from a lease, and faults disturb it.
type replica struct {
	world   *world
	book    *ledger
	n, life int
	seen    [maxItems]item     // the newest state that a reply or a read brought
	holders *[maxItems]*holder // of world.leases
	slots   [maxItems][maxSlots]sighting
	given   []*operation // admitted takes that a refund may give back
	pending []*operation // asked of the store, without an answer
	owed    []*operation // charges and refunds that are to be applied
	paying  *operation   // and the one that was sent

	asleep int64 // true time until which nothing runs here
	lag    int64 // the monotonic clock stood still for so long
	wall   int64 // wall clock less true time
	offset int64 // corrected clock less true time, within the skew
	last   int64 // the corrected clock never goes back
}

// newReplica returns a replica that has just started.
func newReplica(w *world, book *ledger, n int) *replica {
	return &replica{world: w, book: book, holders: &w.leases[n], n: n}
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
// takes, a late copy of a take would put back the id that an applied charge was pinned to.
// Then a copy of the charge could be applied again.
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

// learn takes over a state of an item, unless a newer one is known. An item that is
// absent has no number, and no lease.
func (r *replica) learn(i int, it *item) {
	newer := it.newer(&r.seen[i]) || it[attrCreated] == 0 && r.holders[i] == nil
	if !newer && r.world.removed != NewestState {
		return
	}
	r.seen[i] = *it
	h := r.holders[i]
	if h == nil {
		return
	}
	r.refill(h)
	if h.settle(it) {
		r.holders[i] = nil
		r.world.tracef("r%d holds nothing of item %d", r.n, i)
	}
}

// read reads the items as they are.
func (r *replica) read() {
	for i := range r.world.items {
		it := r.world.items[i]
		r.learn(i, &it)
	}
}

// send puts a write on its way to the store, sometimes twice.
func (r *replica) send(q *write) {
	w := r.world
	m := &message{from: r.n, life: r.life, write: q, sent: w.now}
	m.lost = w.shape.lose && w.chance(8)
	w.tracef("r%d plans %s at %d item %d: %s", r.n, q.kind, q.at, q.item, q)
	w.net = append(w.net, m)
	doubled := q.op != nil || w.chance(4)
	if doubled && w.chance(5) {
		twice := *m
		w.net = append(w.net, &twice)
	}
}
