package lease

// Watch remembers since when the slots of other replicas are unchanged. A slot that stays
// so for [ReapAfter] belongs to a lease that is over: its holder stopped to serve it a
// [Term] after it was sent, by each of its clocks. The zero Watch is ready.
type Watch struct {
	slots map[uint32]sighting
}

// sighting is a slot, and the monotonic time at which it was first seen as it is.
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
	next := make(map[uint32]sighting, len(slots))
	for _, s := range slots {
		old, ok := w.slots[s.Replica]
		if !ok || old.seq != s.Seq {
			old = sighting{seq: s.Seq, since: mono}
		}
		next[s.Replica] = old
	}
	w.slots = next
}

// Dead returns a replica whose slot may be reaped, by a write that is pinned to the latest
// image, and false where there is none.
func (w *Watch) Dead(mono int64) (replica uint32, ok bool) {
	for id, s := range w.slots {
		if mono-s.since >= ReapAfter && (!ok || id < replica) {
			replica, ok = id, true
		}
	}
	return replica, ok
}
