package ratemodel

// share is the parts that a lease write moves: of the rate and of the room, before and
// after, and units of each limit from the centre to the holder.
type share struct {
	rate, nextRate int64
	room, nextRoom int64
	stock, pull    [maxLimits]int64
	back           bool // all of it goes back
}

func (s *share) rateUp() int64 { return s.nextRate - s.rate }
func (s *share) roomUp() int64 { return s.nextRoom - s.room }

// leaser writes the lease of a replica.
type leaser struct{ *replica }

// lease grants, grows, renews, shrinks or returns.
func (r leaser) lease(back bool) {
	w := r.world
	i := r.pick()
	s, h := &r.seen[i], r.holders[i]
	if !s.live() || h == nil && (back || s[slotID(r.slot())] != 0) {
		return
	}
	fresh := h == nil
	if fresh {
		h = &holder{slot: r.slot(), cands: []*candidate{{at: r.clock(), serial: s[attrCount], epoch: s[attrEpoch]}}}
	}
	if len(h.cands) > 3 || len(h.cands) > 1 && !w.chance(3) || back && h.held != [maxLimits]int64{} {
		return
	}
	r.refill(h)
	if s[slotID(h.slot)] != h.cands[0].id || back && h.cands[0].id == 0 {
		return
	}
	sh := r.shares(s, h, back)
	q := writer(r).exact(kindLease, i, r.clock())
	if !r.planLease(q, s, h, &sh) {
		return
	}
	r.holders[i] = h
	h.cands = append(h.cands, r.candidate(q, s, h, &sh))
	w.stats.Leases++
	writer(r).sendExact(q)
}

// shares draws the next shares.
func (r leaser) shares(s *item, h *holder, back bool) share {
	w := r.world
	rate, room := h.cands[0].granted, h.cands[0].room
	sh := share{rate: rate, room: room, back: back}
	for l := range w.shape.limits {
		sh.stock[l] = h.free(Whole, l)
	}
	if back {
		return sh
	}
	sh.nextRate = w.upTo(rate + s[attrRate])
	sh.nextRoom = w.upTo(room + s[attrRoom])
	switch w.rng.IntN(6) {
	case 0:
		sh.nextRate, sh.nextRoom = rate, room
	case 1, 2:
		sh.nextRoom = room
	case 3:
		sh.nextRate = rate
	}
	return sh
}

func (r leaser) planLease(q *write, s *item, h *holder, sh *share) bool {
	for l := range r.world.shape.limits {
		if !r.drawPull(q, s, h, sh, l) {
			return false
		}
		q.raise(l, sh.pull[l]-r.world.limitOf(s, q.item, l).room(1)*sh.roomUp())
	}
	q.state.give(-sh.rateUp(), -sh.roomUp(), q.at)
	q.slot = h.slot
	id := q.id
	if sh.back {
		id, q.kind = 0, kindReturn
	}
	q.state.slot(h.slot, id, sh.nextRate, sh.nextRoom)
	return true
}

// drawPull draws the tokens that move with the shares: no more than there are, and no
// more than there is room for on the other side.
func (r leaser) drawPull(q *write, s *item, h *holder, sh *share, l int) bool {
	w := r.world
	lim := w.limitOf(s, q.item, l)
	y := sh.stock[l]
	if sh.back {
		sh.pull[l] = -y
		return true
	}
	lo, hi := -y, min(lim.room(sh.nextRoom)-y-h.held[l], max(0, lim.tokens(s, l, q.at)))
	if w.removed != RoomForTokens {
		lo = max(lo, lim.room(1)*sh.roomUp()-lim.missing(s, l, q.at))
	}
	if hi < lo {
		return false
	}
	switch w.rng.IntN(3) {
	case 0:
		sh.pull[l] = hi
	case 1:
		sh.pull[l] = lo + w.upTo(hi-lo)
	default:
		sh.pull[l] = max(lo, min(0, hi))
	}
	return true
}

// candidate is the lease that the write makes. It is one from the plan on: the write is
// as if done then, or it is refused.
func (r leaser) candidate(q *write, s *item, h *holder, sh *share) *candidate {
	w, base := r.world, h.cands[0]
	c := &candidate{
		id: q.id, serial: q.serial, epoch: s[attrEpoch], granted: sh.nextRate, room: sh.nextRoom, rate: sh.nextRate, at: base.at,
		endMono: r.mono() + w.shape.term, endWall: r.wallNow() + w.shape.term,
	}
	if sh.back {
		c.id = 0
	}
	if w.removed == GivenAtPlan {
		c.rate = max(sh.rate, sh.nextRate)
	}
	for l := range w.shape.limits {
		c.limits[l] = w.limitOf(s, q.item, l)
		c.stock[l] = sh.stock[l] + h.held[l] + sh.pull[l]
		c.lost[l] = base.lost[l] + base.stock[l] - sh.stock[l] - h.held[l]
	}
	if base.id == 0 {
		base.limits = c.limits
	}
	q.next = c
	return c
}
