package ratemodel

// shaper splits and merges shards.
type shaper struct{ *replica }

// reshape takes the next step of a split or a merge, whichever the states allow.
func (r shaper) reshape() {
	i := r.sharded()
	s := &r.seen[i]
	if !s.live() {
		return
	}
	level := s[attrLevel]
	if s[attrMove] != 0 {
		r.finish(i, childOf(i, level))
		return
	}
	if level == 1 || level < maxShards && r.world.chance(2) {
		r.split(i)
		return
	}
	child := childOf(i, level)
	switch {
	case child >= maxShards || i >= int(level)/2: // it is the half that was split off
	case r.seen[child][attrRetired] != 0:
		r.absorb(i, child)
	default:
		r.retire(child)
	}
}

// finish makes the other half of a split, or notes that it is made.
func (r shaper) finish(i, child int) {
	s, c := &r.seen[i], &r.seen[child]
	made := c[attrEpoch] >= s[attrMove]
	if r.world.removed == ChildOnce {
		made = c.live() // a shard that is retired again seems not to be made yet
	}
	if made {
		r.clear(i)
	} else {
		r.createChild(i, child)
	}
}

// split halves the limits of an item. The tokens of the child wait on the item.
func (r shaper) split(i int) {
	w, parts := r.world, r.world.shape.parts
	s := &r.seen[i]
	if w.removed != SplitAlone && !s.alone(parts) {
		return
	}
	level := 2 * s[attrLevel]
	q := writer(r).exact(kindSplit, i, r.clock())
	for l := range w.shape.limits {
		lim := w.limitOf(s, i, l)
		whole := w.limits[s[attrVersion]][l]
		own, child := whole.shard(i, level), whole.shard(childOf(i, level), level)
		tokens := 2 * lim.tokens(&q.state, l, q.at)
		room := own.room(s[attrRoom])
		x := max(0, tokens-room, min(tokens/2, child.room(s[attrRoom])))
		q.state[moved(l)] = x
		q.state[deficit(l)] = lim.refilled(s, q.at) + room - (tokens - x)
	}
	q.state[attrLevel] = level
	q.state[attrEpoch]++
	q.state[birthOf(level)] = q.state[attrEpoch]
	q.state[attrMove], q.state[attrMoveAt] = q.state[attrEpoch], q.at
	writer(r).sendExact(q)
}

// createChild makes the other half of a split, as of the time of the split. All replicas
// make the same item.
func (r shaper) createChild(i, child int) {
	w, parts := r.world, r.world.shape.parts
	s := &r.seen[i]
	q := writer(r).exact(kindChild, child, s[attrMoveAt])
	q.state = item{}
	q.state[attrCreated], q.state[attrVersion] = 1, s[attrVersion]
	q.state[attrEpoch], q.state[attrBirth] = s[attrMove], s[attrMove]
	q.state[attrLevel] = s[attrLevel]
	q.state[attrRate], q.state[attrRoom] = parts, parts
	for l := range w.shape.limits {
		lim := w.limits[s[attrVersion]][l].shard(child, s[attrLevel])
		x := s[moved(l)]
		if w.removed == ChildShare {
			x = lim.room(parts)
		}
		q.state[deficit(l)] = lim.amount*parts*q.at + lim.room(parts) - x
	}
	writer(r).sendExact(q)
}

// clear says that the child is there.
func (r shaper) clear(i int) {
	q := writer(r).exact(kindClear, i, r.clock())
	q.state[attrMove] = 0
	writer(r).sendExact(q)
}

// retire ends a shard. Its tokens wait on it.
func (r shaper) retire(i int) {
	w := r.world
	s := &r.seen[i]
	if !s.live() || s[attrLevel] != bornAt(i) || s[attrMove] != 0 || w.removed != RetireAlone && !s.alone(w.shape.parts) {
		return
	}
	q := writer(r).exact(kindRetire, i, r.clock())
	for l := range w.shape.limits {
		q.state[moved(l)] = w.limitOf(s, i, l).tokens(&q.state, l, q.at)
	}
	q.state[attrMoveAt], q.state[attrRetired] = q.at, 1
	q.state[attrEpoch]++
	writer(r).sendExact(q)
}

// absorb doubles the limits of an item and adds the tokens of the retired shard that
// was split off last, refilled up to now.
func (r shaper) absorb(i, other int) {
	w, g := r.world, r.world.removed
	s, child := &r.seen[i], &r.seen[other]
	if !s.alone(w.shape.parts) || child[attrLevel] != s[attrLevel] {
		return
	}
	if g != AbsorbOnce && child[attrBirth] != s[birthOf(s[attrLevel])] {
		return
	}
	at := r.clock()
	if g != AbsorbAfter {
		at = max(at, child[attrMoveAt])
	}
	q := writer(r).exact(kindAbsorb, i, at)
	level := s[attrLevel] / 2
	for l := range w.shape.limits {
		own := w.limitOf(s, i, l)
		whole := w.limits[s[attrVersion]][l].shard(i, level)
		tokens := whole.sum(own.tokens(&q.state, l, at), absorbed(w, child, other, l, at))
		q.state[deficit(l)] = own.refilled(s, at) + whole.room(s[attrRoom]) - tokens
	}
	q.state[birthOf(s[attrLevel])] = 0
	q.state[attrLevel] = level
	q.state[attrEpoch] = max(s[attrEpoch], child[attrEpoch]) + 1
	writer(r).sendExact(q)
}
