package ratemodel

// candidate is a lease that the slot may hold: the one that it is known to hold, or
// the result of a lease write that is under way.
type candidate struct {
	id, old int64 // old: the slot that the write pins
	limits  [maxLimits]limit
	rate    int64 // parts of the rate that refill it
	granted int64 // parts of the rate that it has once its write is known to be applied
	room    int64 // parts of the room
	stock   [maxLimits]int64
	most    [maxLimits]int64 // units that it may refill to
	lost    [maxLimits]int64 // units that the rate was good for and the stock did not get
	at      int64            // the clock up to which it is refilled
	endMono int64
	endWall int64
}

// holder is a lease of this replica on an item. The first candidate is the slot as
// it is known to be.
type holder struct {
	slot  int
	cands []*candidate
	held  [maxLimits]int64 // units kept for large requests
}

// refill brings each candidate up to now.
func (h *holder) refill(r *replica) {
	now := r.clock()
	if r.world.removed == OneClock {
		now = max(now, r.mono()+r.world.shape.skew)
	}
	for _, c := range h.cands {
		c.refill(now)
	}
}

func (c *candidate) refill(now int64) {
	dt := now - c.at
	if dt <= 0 {
		return
	}
	c.at = now
	for l, lim := range c.limits {
		due := lim.amount * c.granted * dt
		gain := min(lim.amount*c.rate*dt, max(0, c.most[l]-c.stock[l]))
		c.stock[l] += gain
		c.lost[l] += due - gain
	}
}

// whole gives a candidate all that its write granted.
func (c *candidate) whole() {
	c.rate = c.granted
	for l, lim := range c.limits {
		c.most[l] = lim.room(c.room)
	}
}

// confirmedAt starts the term at the reply, which is wrong.
func (c *candidate) confirmedAt(r *replica, applied bool) {
	if applied && r.world.removed == TermFromSend {
		c.endMono = r.mono() + r.world.shape.term
		c.endWall = r.wallNow() + r.world.shape.term
	}
}

// settle keeps the candidates that a slot with this id allows. It reports that none
// is left: nothing is leased, or the slot was reaped.
func (h *holder) settle(r *replica, id int64) bool {
	h.refill(r)
	found := -1
	for i, c := range h.cands {
		if c.id == id {
			found = i
		}
	}
	if found < 0 || found > 0 && id == 0 {
		r.world.orphan(h.cands)
		return true
	}
	now := h.cands[found]
	keep := []*candidate{now}
	var gone []*candidate
	for _, c := range h.cands {
		switch {
		case c == now:
		case c.old == id:
			keep = append(keep, c)
		default:
			gone = append(gone, c)
		}
	}
	r.world.orphan(gone)
	if found > 0 {
		now.whole()
	}
	h.cands = keep
	return false
}

// orphan keeps for the ledger the first grants that may still land: after a return
// the slot is absent again, as they require. No holder serves them; they are reaped.
func (w *world) orphan(cands []*candidate) {
	for _, c := range cands {
		if c.old == 0 && c.id != 0 {
			w.dead = append(w.dead, &holder{cands: []*candidate{c}})
		}
	}
}

// drop forgets a lease write that was refused. It reports that nothing is left.
func (h *holder) drop(refused *candidate) bool {
	for i, c := range h.cands {
		if i > 0 && c == refused {
			h.cands = append(h.cands[:i:i], h.cands[i+1:]...)
			break
		}
	}
	return len(h.cands) == 1 && h.cands[0].id == 0
}

// serves reports whether the lease has started and has not ended.
func (h *holder) serves(r *replica) bool {
	c := h.cands[0]
	if c.id == 0 {
		return false
	}
	mono, wall := r.mono() < c.endMono, r.wallNow() < c.endWall
	g := r.world.removed
	return (mono || g == MonotonicEnd) && (wall || g == WallEnd)
}

// free is the stock that every candidate has beyond the held units.
func (h *holder) free(g Guard, l int) int64 {
	n := h.cands[0].stock[l]
	if g != ServeByAll {
		for _, c := range h.cands[1:] {
			n = min(n, c.stock[l])
		}
	}
	return n - h.held[l]
}

func (h *holder) spend(l int, units int64) {
	for _, c := range h.cands {
		c.stock[l] -= units
	}
}

// local admits a request from the lease, or asks the centre for the rest.
func (r *replica) local() {
	w := r.world
	i := r.sharded()
	h := r.holders[i]
	if h == nil || !h.serves(r) {
		return
	}
	h.refill(r)
	tokens := r.request(i)
	op := r.operation(kindTake, i, tokens)
	missing := false
	for l, n := range tokens {
		lim := h.cands[0].limits[l]
		if n == 0 {
			continue
		}
		op.held[l] = min(n, max(0, h.free(w.removed, l))/max(1, lim.units(1)))
		op.tokens[l] = n - op.held[l]
		missing = missing || op.tokens[l] > 0
	}
	if missing {
		r.large(h, op)
		return
	}
	w.stats.Local++
	for l, n := range tokens {
		if n > 0 {
			h.spend(l, h.cands[0].limits[l].units(n))
			w.book.local(w, h, i, l, h.cands[0].limits[l].units(n))
			w.admit(op, l, n)
		}
	}
	w.tracef("r%d admits %v of its lease at %d", r.n, tokens, op.at)
}

// large keeps the tokens of the lease and takes the rest from the centre.
func (r *replica) large(h *holder, op *operation) {
	if !r.world.shape.large || op.held == [maxLimits]int64{} {
		return
	}
	op.holder = h
	if !r.takeFor(op) {
		return
	}
	r.world.stats.Large++
	for l, n := range op.held {
		units := h.cands[0].limits[l].units(n)
		if r.world.removed == HoldKeepsRoom {
			h.spend(l, units)
		} else {
			h.held[l] += units
		}
	}
}

// unhold leaves the kept tokens in the lease.
func (h *holder) unhold(r *replica, op *operation) {
	for l, n := range op.held {
		units := h.cands[0].limits[l].units(n)
		if r.world.removed == HoldKeepsRoom {
			h.refill(r)
			h.spend(l, -units)
		} else {
			h.held[l] -= units
		}
	}
}

func (h *holder) spendHeld(r *replica, op *operation) {
	for l, n := range op.held {
		units := h.cands[0].limits[l].units(n)
		if r.world.removed != HoldKeepsRoom {
			h.held[l] -= units
			h.spend(l, units)
		}
		r.world.book.local(r.world, h, op.item, l, units)
	}
}

// charge takes the part of a charge that the lease has.
func (h *holder) charge(r *replica, tokens *[maxLimits]int64) {
	h.refill(r)
	i := 0
	if r.holders[1] == h {
		i = 1
	}
	for l := range r.world.shape.limits {
		lim := h.cands[0].limits[l]
		n := min(tokens[l], max(0, h.free(r.world.removed, l))/lim.units(1))
		tokens[l] -= n
		h.spend(l, lim.units(n))
		r.world.book.local(r.world, h, i, l, lim.units(n))
		r.world.charged(r.clock(), l, n)
	}
}
