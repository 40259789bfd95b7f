package ratemodel

// A scripted duel has rounds: one replica's writes are late, and the other drains the
// bucket before and after they are applied. Tokens that were made in between show at
// once.

// drain takes all that the centre has, or a part.
func (r actor) drain() {
	w := r.world
	r.read()
	s := &r.seen[0]
	lim := w.limitOf(s, 0, 0)
	n := max(0, lim.tokens(s, 0, r.clock())) / lim.units(1)
	if w.chance(3) {
		n = w.upTo(n)
	}
	if n > 0 && r.asleep <= w.now {
		r.takeFor(r.operation(kindTake, 0, [maxLimits]int64{n}))
	}
}

// lateRound: lease writes and takes of the first replica are late.
func (m *model) lateRound() {
	late, other := m.reps[0], m.reps[1]
	pause := func() { m.now += m.upTo([]int64{1, 6, 30}[m.rng.IntN(3)]) }
	if m.chance(2) {
		other.drain()
		m.land(kindTake)
	}
	pause()
	late.read()
	for range m.rng.IntN(1 + m.shape.stale) {
		other.read()
		other.lease(m.chance(2))
		m.landOf(other)
		pause()
	}
	for range 1 + m.rng.IntN(2) {
		late.lease(m.chance(4))
	}
	if m.chance(2) {
		late.take()
	}
	for range m.rng.IntN(4) {
		pause()
		if m.chance(2) {
			other.drain()
			other.last = other.clock()
			m.landOf(other)
		}
		if m.chance(4) {
			other.read()
			other.lease(m.chance(3))
			m.landOf(other)
		}
		late.burst()
	}
	m.land()
	if m.chance(2) {
		late.burst()
	}
	other.drain()
	m.land()
}

// reapRound: the first replica has a lease, sleeps, comes back, renews late; the
// second waits for its end and drains.
func (m *model) reapRound() {
	holder, other := m.reps[0], m.reps[1]
	term := m.shape.term
	pause := func() { m.now += m.upTo([]int64{2, term / 4, term / 2, term * 5 / 4}[m.rng.IntN(4)]) }
	for range 2 + m.rng.IntN(3) {
		if holder.asleep <= m.now {
			m.holderTurn(holder)
		}
		pause()
		other.read()
		other.reap()
		if m.chance(2) {
			other.drain()
			m.land(kindTake, kindLease)
		}
		if m.chance(2) {
			m.land()
		}
		if holder.asleep <= m.now && m.chance(2) {
			holder.burst()
		}
	}
	m.land()
	other.drain()
	m.land()
	if holder.asleep <= m.now {
		holder.burst()
	}
}

func (m *model) holderTurn(r actor) {
	r.read()
	switch m.rng.IntN(8) {
	case 0, 1, 2:
		r.lease(false)
	case 3:
		r.lease(true)
	case 4:
		r.sleep()
	case 5:
		if m.chance(6) {
			r.mayCrash()
		}
	case 6:
		r.setBack(4 * m.shape.term)
	default:
		r.burst()
	}
	switch m.rng.IntN(3) {
	case 0:
		m.landOf(r)
	case 1:
		m.reach(r)
	}
}
