package lease

import "iter"

// Watch remembers since when the slots of other replicas are unchanged. A slot that stays
// so for [ReapAfter] belongs to a lease that is over: its holder stopped to serve it a
// [Term] after it was sent, by each of its clocks. The zero Watch is ready.
type Watch struct {
	slots map[uint32]sighting
	gone  map[uint32]int64 // when a slot that is gone was last seen
}

// userMemory is for how long the replica of a slot that is gone counts as a user of the item.
// It is in milliseconds of the monotonic clock.
const userMemory = 30_000

// sighting is the content of a slot, and the monotonic time at which it was first
// seen.
type sighting struct {
	seq   uint16
	since int64
}

// SlotID names a slot of another replica in an image of the item.
type SlotID struct {
	Replica uint32
	Seq     uint16
}

// Seen takes note of all slots of other replicas, as the latest image has them.
func (w *Watch) Seen(mono int64, slots []SlotID) {
	if len(slots)+len(w.slots) == 0 {
		return
	}
	next := make(map[uint32]sighting, len(slots))
	for _, s := range slots {
		old, ok := w.slots[s.Replica]
		if !ok || old.seq != s.Seq { // rule: a renewed lease is not dead
			old = sighting{seq: s.Seq, since: mono}
		}
		next[s.Replica] = old
	}
	for id := range w.slots {
		if _, ok := next[id]; !ok {
			w.leave(mono, id)
		}
	}
	w.slots = next
}

// leave notes that a slot is gone, and forgets those that have been for too long.
func (w *Watch) leave(mono int64, replica uint32) {
	if w.gone == nil {
		w.gone = make(map[uint32]int64)
	}
	for id, since := range w.gone {
		if mono-since >= userMemory {
			delete(w.gone, id)
		}
	}
	if len(w.gone) < MaxHolders {
		w.gone[replica] = mono
	}
}

// Users returns the replicas that have a slot, or had one a while ago.
func (w *Watch) Users(mono int64) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := range w.slots {
			if !yield(id) {
				return
			}
		}
		for id, since := range w.gone {
			if _, again := w.slots[id]; !again && mono-since < userMemory && !yield(id) {
				return
			}
		}
	}
}

// Dead returns a replica whose slot may be reaped, by a write that is pinned to the latest
// image, and false where there is none.
func (w *Watch) Dead(mono int64) (replica uint32, ok bool) {
	for id, s := range w.slots {
		if mono-s.since >= ReapAfter && (!ok || id < replica) { // rule: a lease is freed after its term
			replica, ok = id, true
		}
	}
	return replica, ok
}
