package ratemodel

// reaper frees the slots of holders that are gone.
type reaper struct{ *replica }

// reap frees a slot whose id was seen for longer than a term.
func (r reaper) reap() {
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

func (r reaper) reapSlot(i, slot int) {
	w, s := r.world, &r.seen[i]
	q := writer(r).exact(kindReap, i, r.clock())
	q.slot = slot
	rate, room := s[slotRate(slot)], s[slotRoom(slot)]
	for l := range w.shape.limits {
		if w.removed != ReapSpent {
			q.raise(l, w.limitOf(s, i, l).room(room))
		}
	}
	q.state.give(rate, room, q.at)
	q.state.slot(slot, 0, 0, 0)
	w.stats.Reaps++
	writer(r).sendExact(q)
}
