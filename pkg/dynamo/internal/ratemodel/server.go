package ratemodel

// server serves requests from a lease.
type server struct{ *replica }

// admits reports whether the lease has all tokens of a request.
func (r server) admits(h *holder, tokens [maxLimits]int64) bool {
	if !r.serves(h) {
		return false
	}
	r.refill(h)
	for l, n := range tokens {
		if n > 0 && h.tokens(r.world.removed, l) < n {
			return false
		}
	}
	return true
}

// serve admits a request from the lease.
func (r server) serve(h *holder, op *operation) {
	w := r.world
	w.stats.Local++
	op.answer, op.told = yes, yes
	for l, n := range op.tokens {
		if n > 0 {
			r.pay(h, op.item, l, n)
			w.events.take(op, l, n)
		}
	}
	op.commits = 1
	w.tracef("r%d admits %v of its lease on item %d at %d", r.n, op.tokens, op.item, op.at)
}

// pay takes whole tokens from the lease.
func (r server) pay(h *holder, i, l int, n int64) {
	w := r.world
	units := h.cands[0].limits[l].units(n)
	if h.find(w.items[i][slotID(h.slot)]) == nil {
		w.fail("slot %d of item %d is served after it was reaped", h.slot, i)
	}
	h.spend(l, units)
	r.book.local(h, i, l, units)
}

// hold keeps tokens in the lease for a large request.
func (r server) hold(h *holder, op *operation) {
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
func (r server) unhold(h *holder, op *operation) {
	for l, n := range op.held {
		units := h.cands[0].limits[l].units(n)
		if r.world.removed == HoldKeepsRoom {
			r.refill(h)
			h.spend(l, -units)
		} else {
			h.held[l] -= units
		}
	}
}

// spendHeld takes the kept tokens from the lease.
func (r server) spendHeld(h *holder, op *operation) {
	for l, n := range op.held {
		units := h.cands[0].limits[l].units(n)
		if r.world.removed != HoldKeepsRoom {
			h.held[l] -= units
			h.spend(l, units)
		}
		r.book.local(h, op.item, l, units)
	}
}

// charge takes the part of a charge that the lease has.
func (r server) charge(h *holder, i int, tokens *[maxLimits]int64) {
	r.refill(h)
	for l := range r.world.shape.limits {
		n := min(tokens[l], h.tokens(r.world.removed, l))
		tokens[l] -= n
		r.pay(h, i, l, n)
		r.world.events.charge(i, r.clock(), l, n, r.world.commits)
	}
}
