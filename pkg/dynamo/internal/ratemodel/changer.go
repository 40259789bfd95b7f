package ratemodel

// changer changes the limits of a bucket.
type changer struct{ *replica }

// change puts the next version of the limits on the item. It keeps the use: the
// tokens that refill has yet to make up for.
func (r changer) change() {
	w, g := r.world, r.world.removed
	s := &r.seen[0]
	if s[attrCreated] == 0 || s[attrLevel] != 1 || g != ChangeAlone && !s.alone(w.shape.parts) {
		return
	}
	next := s[attrVersion] + 1
	if int(next) == len(w.limits) {
		w.limits = append(w.limits, w.drawLimits())
	}
	q := writer(r).exact(kindChange, 0, r.clock())
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
	writer(r).sendExact(q)
}
