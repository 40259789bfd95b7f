package ratemodel

// An exact write is a function from the state that it was planned from, at the time of
// its plan, to the next state. It sets all that changed. The epoch and the serial number
// n pin it to that state, so no write lies between the two, and it lands at most once.

// exact starts an exact write on an item: the state as it is at the plan.
func (r *replica) exact(k kind, i int, at int64) *write {
	w, s := r.world, &r.seen[i]
	q := &write{kind: k, item: i, at: at, id: w.newID(), state: *s, serial: s[attrCount], slot: -1}
	for l := range w.shape.limits {
		q.floor[l] = w.limitOf(s, i, l).refilled(s, at)
		q.state.refill(l, q.floor[l])
	}
	return q
}

// refill raises v to the refill R(t). Refill that a full centre has no room for
// makes up for carried use.
func (it *item) refill(l int, refilled int64) {
	if over := refilled - it[deficit(l)]; over > 0 {
		it[deficit(l)] = refilled
		it[carried(l)] = max(0, it[carried(l)]-over)
	}
}

// raise moves v by dv, from its floor.
func (w *write) raise(l int, dv int64) {
	w.intent[l] += dv
	w.state[deficit(l)] += dv
}

// perMillisecond is more than the writes that one item takes in a millisecond.
const perMillisecond = 1000

// sendExact sends what differs from the state that the write was planned from.
func (r *replica) sendExact(q *write) {
	g, s := r.world.removed, &r.seen[q.item]
	if q.restructures(g, s) {
		q.state[attrEpoch] = max(q.state[attrEpoch], s[attrEpoch]+1)
	}
	if g != ExactEpoch {
		q.require(attrEpoch, equal, s[attrEpoch])
	}
	if g != pins(q.kind) {
		q.require(attrCount, equal, s[attrCount])
	}
	for a := range attrs {
		if a != attrCount && (q.state[a] != s[a] || s[attrCreated] == 0) {
			q.set(a, q.state[a])
		}
	}
	r.world.send(r, q)
}

// restructures reports whether a write changes what commuting writes rest on: they are
// pinned to the epoch, and must not find the state after it.
func (w *write) restructures(g Guard, s *item) bool {
	for l := range maxLimits {
		if w.intent[l] < 0 && g != EpochTokens {
			return true
		}
	}
	return w.state[attrLine] != s[attrLine] && g != EpochLine ||
		w.state[attrRoom] < s[attrRoom] && g != EpochRoom ||
		w.state[attrVersion] != s[attrVersion] && g != EpochLimits
}

// alone reports that nothing of an item is leased.
func (it *item) alone(parts int64) bool {
	return it[attrCreated] == 1 && it[attrRate] == parts && it[attrRoom] == parts
}

// live reports that an item gives tokens.
func (it *item) live() bool { return it[attrCreated] == 1 && it[attrRetired] == 0 }

// change puts the next version of the limits on the item. It keeps the use: the
// tokens that refill has yet to make up for.
func (r *replica) change() {
	w, g := r.world, r.world.removed
	s := &r.seen[0]
	if s[attrCreated] == 0 || s[attrLevel] != 1 || g != ChangeAlone && !s.alone(w.shape.parts) {
		return
	}
	next := s[attrVersion] + 1
	if int(next) == len(w.limits) {
		w.limits = append(w.limits, w.drawLimits())
	}
	q := r.exact(kindChange, 0, r.clock())
	q.state[attrVersion] = next
	for l := range w.shape.limits {
		old, lim := w.limits[s[attrVersion]][l], w.limits[next][l]
		refilled, room := lim.refilled(s, q.at), lim.room(s[attrRoom])
		tokens, use := old.moveTo(lim, &q.state, l, q.at)
		if g == ChangeKeeps {
			tokens = room
		}
		q.state[deficit(l)] = refilled + room - tokens
		q.state[carried(l)] = max(0, tokens+use-room)
	}
	r.sendExact(q)
}

// moveTo is the tokens and the use of a state, brought to t, under other limits.
func (l limit) moveTo(to limit, it *item, n int, t int64) (tokens, use int64) {
	has, room := l.tokens(it, n, t), to.room(it[attrRoom])
	use = -l.convert(has-l.room(it[attrRoom])-it[carried(n)], to)
	tokens = min(room, max(l.convert(has, to), room-use))
	return tokens, use
}
