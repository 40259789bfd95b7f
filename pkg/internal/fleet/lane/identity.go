package lane

import (
	"log/slog"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// A process writes under a number that it draws when it starts. Each of its writes has a
// number too, so that no two writes have one id. A machine that is copied while it runs has
// a copy of the process, with the same next numbers. So the lowest bits of a write's number
// are drawn. A process that sees a number of its own which it has not come to yet has found
// its copy, and draws another replica number.

// saltBits is the number of drawn bits of a write's number.
const saltBits = 10

// identity is the number that a process writes under. It is safe for concurrent use.
type identity struct {
	by      awsdb.Loop
	logger  *slog.Logger
	first   uint32
	drawn   atomic.Uint32 // another one since; 0 = none
	renamed atomic.Uint64 // how often
	writes  atomic.Uint64
}

// drawReplica draws the number of a replica, which is not 0.
func drawReplica(by awsdb.Loop) uint32 {
	return uint32(by.Draw(1<<32-1)) + 1 // #nosec G115 -- in range
}

// replica is the number that the process writes under now.
func (d *identity) replica() uint32 {
	if n := d.drawn.Load(); n != 0 {
		return n
	}
	return d.first
}

// next returns the id of a new write.
func (d *identity) next() schema.WriteID {
	salt := uint64(d.by.Draw(1 << saltBits)) // #nosec G115 -- in range
	return schema.NewWriteID(d.replica(), d.writes.Add(1)<<saltBits|salt)
}

// slotOn returns the slot of an item that the process leaves its ids in: the one of its
// last write, else a free one. Two processes whose first writes go to one slot see each
// other there: the one with the lower number stays. Where no slot is free it is a random
// one. So of two processes that share a slot, one moves to the slot of a process that has
// ended.
func (d *identity) slotOn(state *schema.Bucket) int {
	home, free, shared := int(d.first%schema.SlotCount), -1, -1
	if state == nil {
		return home
	}
	self := d.replica()
	for i := range schema.SlotCount {
		slot := (home + i) % schema.SlotCount
		own, lowest := false, self
		for id := range state.SlotIDs(slot) {
			own = own || id.Replica() == self
			lowest = min(lowest, id.Replica())
		}
		switch {
		case own && lowest == self:
			return slot
		case own && shared < 0:
			shared = slot
		case state.Vacant(slot) && free < 0:
			free = slot
		}
	}
	switch {
	case free >= 0:
		return free
	case shared >= 0:
		return shared
	default:
		return int(d.by.Draw(schema.SlotCount))
	}
}

// unmask draws another number when an item shows that another process writes under this one's.
func (d *identity) unmask(state *schema.Bucket) {
	self, writes := d.replica(), d.writes.Load()
	for id := range state.WriteIDs() {
		if id.Replica() == self && id.Number()>>saltBits > writes {
			d.rename(self)
			return
		}
	}
}

// rename draws another number, unless another lane did so since.
func (d *identity) rename(from uint32) {
	before := d.drawn.Load()
	if before != 0 && before != from || !d.drawn.CompareAndSwap(before, drawReplica(d.by)) {
		return
	}
	d.renamed.Add(1)
	d.logger.Warn("another process writes under the number of this one, as after a machine was copied: another number is drawn", slog.Uint64("replica", uint64(d.replica())))
}
