package ratemodel

import "slices"

// A scripted duel has rounds: one replica's writes are late, the other drains the
// bucket before and after they land, and tokens that were made in between show at once.

// land delivers every message at once, or the writes of one kind only.
func (w *world) land(kinds ...kind) {
	for {
		i := slices.IndexFunc(w.net, func(m *message) bool {
			return m.reply || len(kinds) == 0 || slices.Contains(kinds, m.write.kind)
		})
		if i < 0 {
			return
		}
		m := w.net[i]
		w.net = slices.Delete(w.net, i, i+1)
		switch r := w.reps[m.from]; {
		case !m.reply:
			w.commit(m)
		case r.life == m.life && r.asleep <= w.now:
			r.receive(m)
		case r.life == m.life: // it finds the state when it looks
		}
	}
}

// drain takes all that the centre has, or a part.
func (r *replica) drain() {
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
func (w *world) lateRound() {
	late, other := w.reps[0], w.reps[1]
	pause := func() { w.now += w.upTo([]int64{1, 6, 30}[w.rng.IntN(3)]) }
	if w.chance(2) {
		other.drain()
		w.land(kindTake)
	}
	pause()
	late.read()
	for range w.rng.IntN(1 + w.shape.stale) {
		other.read()
		other.lease(w.chance(2))
		w.landOf(other)
		pause()
	}
	for range 1 + w.rng.IntN(2) {
		late.lease(w.chance(4))
	}
	if w.chance(2) {
		late.take()
	}
	for range w.rng.IntN(4) {
		pause()
		if w.chance(2) {
			other.drain()
			other.last = other.clock()
			w.landOf(other)
		}
		if w.chance(4) {
			other.read()
			other.lease(w.chance(3))
			w.landOf(other)
		}
		late.burst()
	}
	w.land()
	if w.chance(2) {
		late.burst()
	}
	other.drain()
	w.land()
}

// landOf delivers the writes and the replies of one replica.
func (w *world) landOf(r *replica) {
	for i := 0; i < len(w.net); {
		m := w.net[i]
		if m.from != r.n {
			i++
			continue
		}
		w.net = slices.Delete(w.net, i, i+1)
		if m.reply {
			r.receive(m)
		} else {
			w.commit(m)
		}
		i = 0
	}
}

// reapRound: the first replica has a lease, sleeps, comes back, renews late; the
// second waits for its end and drains.
func (w *world) reapRound() {
	holder, other := w.reps[0], w.reps[1]
	term := w.shape.term
	pause := func() { w.now += w.upTo([]int64{2, term / 4, term / 2, term * 5 / 4}[w.rng.IntN(4)]) }
	for range 2 + w.rng.IntN(3) {
		if holder.asleep <= w.now {
			w.holderTurn(holder)
		}
		pause()
		other.read()
		other.reap()
		if w.chance(2) {
			other.drain()
			w.land(kindTake, kindLease)
		}
		if w.chance(2) {
			w.land()
		}
		if holder.asleep <= w.now && w.chance(2) {
			holder.burst()
		}
	}
	w.land()
	other.drain()
	w.land()
	if holder.asleep <= w.now {
		holder.burst()
	}
}

func (w *world) holderTurn(r *replica) {
	r.read()
	switch w.rng.IntN(8) {
	case 0, 1, 2:
		r.lease(false)
	case 3:
		r.lease(true)
	case 4:
		r.sleep()
	case 5:
		if w.chance(6) {
			r.mayCrash()
		}
	case 6:
		r.setBack(4 * w.shape.term)
	default:
		r.burst()
	}
	switch w.rng.IntN(3) {
	case 0:
		w.landOf(r)
	case 1:
		w.reach(r)
	}
}

// reach delivers the writes that one replica sent, and no reply.
func (w *world) reach(r *replica) {
	for i := 0; i < len(w.net); {
		m := w.net[i]
		if m.reply || m.from != r.n {
			i++
			continue
		}
		w.net = slices.Delete(w.net, i, i+1)
		w.commit(m)
	}
}
