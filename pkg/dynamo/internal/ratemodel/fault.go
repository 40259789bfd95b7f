package ratemodel

// faults are crashes, sleeps, and clocks that are set.
type faults struct{ *replica }

// crash loses all that is in memory; the slot stays.
func (r faults) crash() {
	w := r.world
	for i, h := range r.holders {
		if h != nil {
			w.dead = append(w.dead, h)
			r.holders[i] = nil
		}
	}
	*r.replica = replica{world: w, book: r.book, holders: r.holders, n: r.n, life: r.life + 1, lag: r.lag, wall: r.wall, offset: r.offset}
	r.read()
	w.tracef("r%d crashes", r.n)
}

// mayCrash crashes the replica, if it has a life left.
func (r faults) mayCrash() {
	if r.life+1 < maxLives {
		r.crash()
	}
}

// sleep stops the replica, and sometimes its monotonic clock.
func (r faults) sleep() {
	d := r.world.upTo(100)
	r.asleep = r.world.now + d
	if r.wall == 0 && r.world.chance(2) {
		r.lag += d
	}
	r.world.tracef("r%d sleeps %d, lag %d", r.n, d, r.lag)
}

// setBack sets the wall clock back. A replica whose monotonic clock stood still keeps
// a right wall clock: with both wrong nothing shows that a lease is over.
func (r faults) setBack(most int64) {
	if r.lag == 0 {
		r.wall -= r.world.upTo(most)
	}
}

// disturb moves the clocks: the correction within the skew, the wall clock anywhere.
func (r faults) disturb() {
	w := r.world
	if w.chance(2) {
		r.offset = w.upTo(2*w.shape.skew) - w.shape.skew
	} else {
		r.setBack(200)
	}
	w.tracef("r%d clocks: offset %d wall %d", r.n, r.offset, r.wall)
}
