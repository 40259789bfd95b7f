package ratemodel

// reshape takes the next step of a split or a merge, whichever the states allow.
func (r *replica) reshape() {
	root, child := &r.seen[0], &r.seen[1]
	switch {
	case root[attrCreated] == 0:
	case root[attrLevel] == 1:
		r.split()
	case root[attrMove] != 0 && child[attrEpoch] >= root[attrMove]:
		r.clear()
	case root[attrMove] != 0:
		r.createChild()
	case child[attrRetired] != 0:
		r.absorb()
	default:
		r.retire()
	}
}

// split halves the limits of the item. The tokens of the child wait on the item.
func (r *replica) split() {
	w, g := r.world, r.world.removed
	s := &r.seen[0]
	if g != SplitAlone && !isAlone(s, w.shape.parts) {
		return
	}
	q := r.plan(kindSplit, 0)
	for l := range w.shape.limits {
		lim := w.limitOf(s, 0, l)
		own, child := lim.shard(0), lim.shard(1)
		tokens := 2 * lim.tokens(s, l, q.at)
		room := own.room(s[attrRoom])
		x := max(0, tokens-room, min(tokens/2, child.room(s[attrRoom])))
		q.set(moved(l), x)
		q.set(deficit(l), lim.refilled(s, q.at)+room-(tokens-x))
	}
	if g == SplitAlone {
		q.pinLine(s)
		q.require(attrRoom, equal, s[attrRoom])
	} else {
		q.alone(s, w.shape.parts)
	}
	if g != SplitDeficit {
		q.pinDeficits(s, w.shape.limits)
	}
	q.require(attrLevel, equal, 1)
	q.set(attrLevel, 2)
	q.set(attrEpoch, s[attrEpoch]+1)
	q.set(attrMove, s[attrEpoch]+1)
	q.set(attrMoveAt, q.at)
	w.send(r, q)
}

// createChild makes the second shard, as of the time of the split. All replicas
// make the same item.
func (r *replica) createChild() {
	w, g := r.world, r.world.removed
	s, parts := &r.seen[0], r.world.shape.parts
	q := &write{kind: kindChild, item: 1, at: s[attrMoveAt], id: w.newID(), slot: -1}
	q.require(attrRetired, equal, 1)
	if g != ChildOnce {
		q.require(attrEpoch, below, s[attrMove])
	}
	q.set(attrRetired, 0)
	q.set(attrCreated, 1)
	q.set(attrEpoch, s[attrMove])
	q.set(attrVersion, s[attrVersion])
	q.set(attrLevel, 2)
	q.set(attrRate, parts)
	q.set(attrLine, 0)
	q.set(attrRoom, parts)
	for l := range w.shape.limits {
		lim := w.limitOf(s, 1, l)
		x := s[moved(l)]
		if g == ChildShare {
			x = lim.room(parts)
		}
		q.set(deficit(l), lim.amount*parts*q.at+lim.room(parts)-x)
	}
	w.send(r, q)
}

// clear says that the child is there.
func (r *replica) clear() {
	s := &r.seen[0]
	q := r.plan(kindClear, 0)
	q.require(attrMove, equal, s[attrMove])
	q.set(attrMove, 0)
	r.world.send(r, q)
}

// retire ends the second shard. Its tokens wait on it.
func (r *replica) retire() {
	w, g := r.world, r.world.removed
	s := &r.seen[1]
	if s[attrCreated] == 0 || g != RetireAlone && !isAlone(s, w.shape.parts) {
		return
	}
	q := r.plan(kindRetire, 1)
	for l := range w.shape.limits {
		q.set(moved(l), w.limitOf(s, 1, l).tokens(s, l, q.at))
	}
	if g == RetireAlone {
		q.pinLine(s)
		q.require(attrRoom, equal, s[attrRoom])
	} else {
		q.alone(s, w.shape.parts)
	}
	if g != RetireDeficit {
		q.pinDeficits(s, w.shape.limits)
	}
	q.set(attrMoveAt, q.at)
	q.set(attrRetired, 1)
	q.set(attrEpoch, s[attrEpoch]+1)
	w.send(r, q)
}

// absorb doubles the limits of the item and adds the tokens of the retired shard,
// refilled up to now.
func (r *replica) absorb() {
	w, g := r.world, r.world.removed
	s, child := &r.seen[0], &r.seen[1]
	if !isAlone(s, w.shape.parts) {
		return
	}
	q := r.plan(kindAbsorb, 0)
	if g != AbsorbAfter {
		q.at = max(q.at, child[attrMoveAt])
	}
	for l := range w.shape.limits {
		own := w.limitOf(s, 0, l)
		whole := w.limits[s[attrVersion]][l]
		tokens := whole.sum(own.tokens(s, l, q.at), absorbed(w, child, l, q.at))
		q.set(deficit(l), own.refilled(s, q.at)+whole.room(s[attrRoom])-tokens)
	}
	q.alone(s, w.shape.parts)
	if g != AbsorbDeficit {
		q.pinDeficits(s, w.shape.limits)
	}
	q.require(attrLevel, equal, 2)
	q.require(attrMove, equal, 0)
	if g != AbsorbOnce {
		q.require(attrAbsorbed, below, child[attrEpoch])
	}
	q.set(attrAbsorbed, child[attrEpoch])
	q.set(attrLevel, 1)
	q.set(attrEpoch, max(s[attrEpoch], child[attrEpoch])+1)
	w.send(r, q)
}

// absorbed is the units of a retired shard at t.
func absorbed(w *world, child *item, l int, t int64) int64 {
	lim := w.limitOf(child, 1, l)
	due := lim.amount * w.shape.parts * max(0, t-child[attrMoveAt])
	return min(lim.room(w.shape.parts), child[moved(l)]+due)
}

// sum is the units of a limit that the units of its two shards make.
func (l limit) sum(a, b int64) int64 {
	half := l
	half.period *= 2
	return min(half.convert(a+b, l), l.room(l.parts))
}
