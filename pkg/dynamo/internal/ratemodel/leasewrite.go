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

// lease grants, grows, renews, shrinks or returns.
func (r *replica) lease(back bool) {
	w := r.world
	i := r.sharded()
	s, h := &r.seen[i], r.holders[i]
	if s[attrCreated] == 0 || s[attrRetired] != 0 || h == nil && (back || s[slotID(r.slot())] != 0) {
		return
	}
	fresh := h == nil
	if fresh {
		h = &holder{slot: r.slot(), cands: []*candidate{{at: r.clock()}}}
	}
	if len(h.cands) > 3 || len(h.cands) > 1 && !w.chance(3) || back && h.held != [maxLimits]int64{} {
		return
	}
	h.refill(r)
	if s[slotID(h.slot)] != h.cands[0].id || back && h.cands[0].id == 0 {
		return
	}
	sh := r.shares(s, h, back)
	q := r.plan(kindLease, i)
	if !r.planLease(q, s, h, &sh) {
		return
	}
	r.holders[i] = h
	h.cands = append(h.cands, r.candidate(q, s, h, &sh))
	w.stats.Leases++
	w.send(r, q)
}

// shares draws the next shares.
func (r *replica) shares(s *item, h *holder, back bool) share {
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

func (r *replica) planLease(q *write, s *item, h *holder, sh *share) bool {
	w, g := r.world, r.world.removed
	if g != SlotPinned {
		q.require(slotID(h.slot), equal, h.cands[0].id)
	}
	gives := sh.rateUp() < 0 || sh.back
	for l := range w.shape.limits {
		if !r.drawPull(q, s, h, sh, l) {
			return false
		}
		if gives {
			r.give(q, s, sh, l)
		} else {
			r.grow(q, s, sh, l)
		}
	}
	if gives && g != ShrinkLine || !gives && g != GrowLine {
		q.pinLine(s)
	}
	q.require(attrRate, atLeast, max(0, sh.rateUp()))
	q.require(attrRoom, atLeast, max(s[attrRoom], sh.roomUp()))
	q.add(attrRate, -sh.rateUp())
	q.add(attrLine, sh.rateUp()*q.at)
	q.add(attrRoom, -sh.roomUp())
	q.slot = h.slot
	id := q.id
	if sh.back {
		id, q.kind = 0, kindReturn
	}
	q.set(slotID(h.slot), id)
	q.set(slotRate(h.slot), sh.nextRate)
	q.set(slotRoom(h.slot), sh.nextRoom)
	return true
}

// drawPull draws the tokens that move with the shares.
func (r *replica) drawPull(q *write, s *item, h *holder, sh *share, l int) bool {
	w, g := r.world, r.world.removed
	lim := w.limitOf(s, q.item, l)
	y, room := sh.stock[l], lim.room(sh.nextRoom)
	if sh.back {
		sh.pull[l] = -y
		return true
	}
	lo, hi := min(0, -y), min(room-y-h.held[l], max(0, lim.tokens(s, l, q.at)))
	move := lim.room(1) * sh.roomUp()
	if move > 0 && g != RoomWithTokens {
		lo = max(lo, move-max(0, s[deficit(l)]-lim.refilled(s, q.at)))
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
	if sh.rateUp() < 0 {
		sh.pull[l] = min(0, sh.pull[l])
		return true
	}
	if sh.pull[l] < 0 && sh.pull[l] < move && g != TokensWithRoom {
		sh.pull[l] = min(0, move)
	}
	return y+sh.pull[l] >= 0
}

// grow plans one limit of a write that gives no rate back.
func (r *replica) grow(q *write, s *item, sh *share, l int) {
	g := r.world.removed
	lim := r.world.limitOf(s, q.item, l)
	refilled, v := lim.refilled(s, q.at), deficit(l)
	x := sh.pull[l]
	dv := x - lim.room(1)*sh.roomUp()
	q.intent[l], q.seen[l] = dv, s[v]
	if s[v] < refilled && dv > 0 {
		q.require(v, atMost, refilled)
		q.floor[l] = refilled
		q.set(v, refilled+dv)
		return
	}
	if dv > 0 && g != GrowFloor {
		q.require(v, atLeast, refilled)
	}
	if x > 0 && g != PullBound {
		q.require(v, atMost, refilled+lim.room(s[attrRoom])-x)
	}
	q.add(v, dv)
}

// give plans one limit of a write that gives rate back: it pins v.
func (r *replica) give(q *write, s *item, sh *share, l int) {
	lim := r.world.limitOf(s, q.item, l)
	refilled, v := lim.refilled(s, q.at), deficit(l)
	q.intent[l] = sh.pull[l] - lim.room(1)*sh.roomUp()
	if r.world.removed == ShrinkDeficit {
		q.raise(Whole, s, l, refilled, 0, q.intent[l])
		return
	}
	q.require(v, equal, s[v])
	q.floor[l] = refilled
	q.set(v, max(s[v], refilled)+q.intent[l])
}

// candidate is the lease that the write makes. Until the reply it has the smaller
// rate, and no room beyond the old one and the tokens that come.
func (r *replica) candidate(q *write, s *item, h *holder, sh *share) *candidate {
	w, g, base := r.world, r.world.removed, h.cands[0]
	c := &candidate{
		id: q.id, old: base.id, granted: sh.nextRate, room: sh.nextRoom,
		rate: min(sh.rate, sh.nextRate), at: base.at,
		endMono: r.mono() + w.shape.term, endWall: r.wallNow() + w.shape.term,
	}
	if sh.back {
		c.id = 0
	}
	if g == RateFromReply {
		c.rate = sh.nextRate
	}
	if g == GivenAtPlan {
		c.rate = max(sh.rate, c.rate)
	}
	for l := range w.shape.limits {
		c.limits[l] = w.limitOf(s, q.item, l)
		lim := c.limits[l]
		c.stock[l] = sh.stock[l] + h.held[l] + sh.pull[l]
		c.lost[l] = base.lost[l] + base.stock[l] - sh.stock[l] - h.held[l]
		c.most[l] = min(lim.room(sh.room)+max(0, sh.pull[l]), max(lim.room(sh.nextRoom), c.stock[l]))
		if g == RoomFromReply {
			c.most[l] = lim.room(sh.nextRoom)
		}
	}
	if base.id == 0 {
		base.limits = c.limits
	}
	q.next = c
	return c
}

// reap frees a slot whose id was seen for longer than a term.
func (r *replica) reap() {
	w, g := r.world, r.world.removed
	i := w.rng.IntN(maxItems)
	s := &r.seen[i]
	for slot := range maxSlots {
		id, seen := s[slotID(slot)], &r.slots[i][slot]
		if id == 0 || slot == r.slot() && r.holders[i] != nil {
			continue
		}
		if seen.id != id {
			*seen = sighting{id, r.mono()}
			continue
		}
		wait := w.shape.term + w.shape.term/8 + 1
		if g == ReapAfterTerm {
			wait = w.shape.term / 2
		}
		if r.mono() >= seen.mono+wait {
			r.reapSlot(i, slot)
			return
		}
	}
}

func (r *replica) reapSlot(i, slot int) {
	w, g := r.world, r.world.removed
	s := &r.seen[i]
	q := r.plan(kindReap, i)
	q.slot = slot
	rate, room := s[slotRate(slot)], s[slotRoom(slot)]
	for l := range w.shape.limits {
		lim := w.limitOf(s, i, l)
		refilled, v := lim.refilled(s, q.at), deficit(l)
		q.intent[l] = lim.room(room)
		if g == ReapSpent {
			q.intent[l] = 0
		}
		if g == ReapDeficit {
			q.raise(Whole, s, l, refilled, 0, q.intent[l])
			continue
		}
		q.require(v, equal, s[v])
		q.floor[l] = refilled
		q.set(v, max(s[v], refilled)+q.intent[l])
	}
	if g != ReapLine {
		q.pinLine(s)
	}
	if g == ReapID {
		q.require(slotRate(slot), equal, rate)
		q.require(slotRoom(slot), equal, room)
	} else {
		q.require(slotID(slot), equal, s[slotID(slot)])
	}
	q.add(attrRate, rate)
	q.add(attrLine, -rate*q.at)
	q.add(attrRoom, room)
	q.set(slotID(slot), 0)
	q.set(slotRate(slot), 0)
	q.set(slotRoom(slot), 0)
	w.stats.Reaps++
	w.send(r, q)
}
