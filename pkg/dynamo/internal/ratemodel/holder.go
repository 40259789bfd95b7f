package ratemodel

// candidate is a lease that the slot may hold: the one that it is known to hold, or
// the result of a lease write that is under way.
type candidate struct {
	id      int64
	serial  int64 // n and epoch of the item that the write is pinned to
	epoch   int64
	limits  [maxLimits]limit
	rate    int64 // parts of the rate that refill it
	granted int64 // the same, once the write is known to be applied
	room    int64 // parts of the room
	stock   [maxLimits]int64
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
		gain := min(lim.amount*c.rate*dt, max(0, lim.room(c.room)-c.stock[l]))
		c.stock[l] += gain
		c.lost[l] += lim.amount*c.granted*dt - gain
	}
}

// confirmedAt starts the term at the reply, which is wrong.
func (c *candidate) confirmedAt(r *replica, applied bool) {
	if applied && r.world.removed == TermFromSend {
		c.endMono = r.mono() + r.world.shape.term
		c.endWall = r.wallNow() + r.world.shape.term
	}
}

// settle keeps the candidates that a state of the item allows: the one of its slot, and
// those whose writes are pinned to this very state. It reports that none is left.
func (h *holder) settle(r *replica, it *item) bool {
	h.refill(r)
	var held *candidate
	var open []*candidate
	for _, c := range h.cands {
		switch {
		case c.id == it[slotID(h.slot)] && held == nil:
			held = c
		case c.serial == it[attrCount] && c.epoch == it[attrEpoch] && c != held:
			open = append(open, c)
		}
	}
	if held == nil || held.id == 0 && len(open) == 0 {
		return true
	}
	held.rate = held.granted
	h.cands = append([]*candidate{held}, open...)
	return false
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

// tokens is the whole tokens that the lease has for a request.
func (h *holder) tokens(g Guard, l int) int64 {
	return max(0, h.free(g, l)) / max(1, h.cands[0].limits[l].units(1))
}

// admits reports whether the lease has all tokens of a request.
func (h *holder) admits(r *replica, tokens [maxLimits]int64) bool {
	if !h.serves(r) {
		return false
	}
	h.refill(r)
	for l, n := range tokens {
		if n > 0 && h.tokens(r.world.removed, l) < n {
			return false
		}
	}
	return true
}

// serve admits a request from the lease.
func (r *replica) serve(h *holder, op *operation) {
	w := r.world
	w.stats.Local++
	op.answer, op.told = yes, yes
	for l, n := range op.tokens {
		if n > 0 {
			h.pay(w, op.item, l, n)
			w.admit(op, l, n)
		}
	}
	op.commits = 1
	w.tracef("r%d admits %v of its lease on item %d at %d", r.n, op.tokens, op.item, op.at)
}

// pay takes whole tokens from the lease.
func (h *holder) pay(w *world, i, l int, n int64) {
	units := h.cands[0].limits[l].units(n)
	if h.find(w.items[i][slotID(h.slot)]) == nil {
		w.fail("slot %d of item %d is served after it was reaped", h.slot, i)
	}
	h.spend(l, units)
	w.book.local(w, h, i, l, units)
}

// local admits a request from the lease, or asks the centre for the rest.
func (r *replica) local() {
	w := r.world
	i := r.pick()
	h := r.holders[i]
	if h == nil || !h.serves(r) {
		return
	}
	op := r.operation(kindTake, i, r.request(i))
	if h.admits(r, op.tokens) {
		r.serve(h, op)
		return
	}
	if !w.shape.large {
		return
	}
	for l, n := range op.tokens {
		op.held[l] = min(n, h.tokens(w.removed, l))
		op.tokens[l] -= op.held[l]
	}
	if op.held != [maxLimits]int64{} {
		r.large(h, op)
	}
}

// large keeps the tokens of the lease and takes the rest from the centre.
func (r *replica) large(h *holder, op *operation) {
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
func (h *holder) charge(r *replica, i int, tokens *[maxLimits]int64) {
	h.refill(r)
	for l := range r.world.shape.limits {
		n := min(tokens[l], h.tokens(r.world.removed, l))
		tokens[l] -= n
		h.pay(r.world, i, l, n)
		r.world.charged(i, r.clock(), l, n)
	}
}
