package ratemodel

func (r *replica) mono() int64    { return r.world.now - r.lag }
func (r *replica) wallNow() int64 { return r.world.now + r.wall }

// clock is the corrected clock: within the skew of true time, and never back.
func (r *replica) clock() int64 {
	r.last = max(r.last, r.world.now+r.offset)
	return r.last
}

// refill brings the candidates of a lease up to now.
func (r *replica) refill(h *holder) {
	now := r.clock()
	if r.world.removed == OneClock {
		now = max(now, r.mono()+r.world.shape.skew)
	}
	h.refill(now)
}

// serves reports whether the lease has started and has not ended.
func (r *replica) serves(h *holder) bool {
	c := h.cands[0]
	if c.id == 0 {
		return false
	}
	mono, wall := r.mono() < c.endMono, r.wallNow() < c.endWall
	g := r.world.removed
	return (mono || g == MonotonicEnd) && (wall || g == WallEnd)
}
