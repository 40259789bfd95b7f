package ratemodel

import "slices"

// expire removes items that their time to live ends: a bucket that is full and
// unused, and retired shards that are absorbed.
func (m *model) expire() {
	for i := range maxShards {
		it := &m.items[i]
		if it[attrCreated] == 0 || m.awaited(i) {
			continue
		}
		next := item{attrVersion: it[attrVersion], attrLevel: it[attrLevel]}
		switch {
		case it[attrRetired] == 1 && m.heir(i)[birthOf(it[attrLevel])] != it[attrBirth]:
			next[attrRetired] = 1
		case i == 0 && it[attrLevel] == 1 && m.unused(it):
		default:
			continue
		}
		m.tracef("item %d expires", i)
		*it = next
		m.book.forget(i)
		m.forget(i)
	}
}

// forget ends all states and replies as old as an unused item can get: no replica uses
// such a state, and no reply is under way for that long.
func (m *model) forget(i int) {
	m.net = slices.DeleteFunc(m.net, func(msg *message) bool { return msg.reply })
	for _, r := range m.reps {
		r.holders[i] = nil
		r.read()
	}
}

// awaited reports whether a copy of the creation of an item is under way.
func (m *model) awaited(i int) bool {
	for _, msg := range m.net {
		if msg.write.kind == kindCreate || msg.write.kind == kindChild && msg.write.item == i {
			return true
		}
	}
	for _, r := range m.reps {
		for _, op := range r.pending {
			if op.write.kind == kindCreate {
				return true
			}
		}
	}
	return false
}

// unused reports whether an item has been as one that was never used for a while.
func (m *model) unused(it *item) bool {
	if !it.alone(m.shape.parts) {
		return false
	}
	for n := range maxSlots {
		if it[slotID(n)] != 0 { // a wish without parts
			return false
		}
	}
	for l := range m.shape.limits {
		if it[deficit(l)]+it[carried(l)] > m.limitOf(it, 0, l).refilled(it, m.now-4*m.shape.skew) {
			return false
		}
	}
	return true
}
