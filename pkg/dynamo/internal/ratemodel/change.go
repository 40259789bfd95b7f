package ratemodel

// alone requires that nothing of the item is leased, and pins the line.
func (w *write) alone(s *item, parts int64) {
	w.require(attrRate, equal, parts)
	w.require(attrRoom, equal, parts)
	w.require(attrLine, equal, s[attrLine])
}

func isAlone(s *item, parts int64) bool {
	return s[attrCreated] == 1 && s[attrRate] == parts && s[attrRoom] == parts
}

// change puts the next version of the limits on the item.
func (r *replica) change() {
	w, g := r.world, r.world.removed
	s := &r.seen[0]
	if s[attrCreated] == 0 || s[attrLevel] != 1 {
		return
	}
	if g != ChangeAlone && !isAlone(s, w.shape.parts) {
		return
	}
	next := s[attrVersion] + 1
	if int(next) == len(w.limits) {
		w.limits = append(w.limits, w.drawLimits())
	}
	q := r.plan(kindChange, 0)
	if g == ChangeVersion {
		q.require(attrVersion, equal, s[attrVersion])
	}
	for l := range w.shape.limits {
		old, lim := w.limits[s[attrVersion]][l], w.limits[next][l]
		tokens := min(old.convert(old.tokens(s, l, q.at), lim), lim.room(s[attrRoom]))
		if g == ChangeKeeps {
			tokens = lim.room(s[attrRoom])
		}
		q.set(deficit(l), lim.refilled(s, q.at)+lim.room(s[attrRoom])-tokens)
	}
	if g == ChangeAlone {
		q.pinLine(s)
		q.require(attrRoom, equal, s[attrRoom])
	} else {
		q.alone(s, w.shape.parts)
	}
	if g != ChangeDeficit {
		q.pinDeficits(s, w.shape.limits)
	}
	q.set(attrVersion, next)
	w.send(r, q)
}
