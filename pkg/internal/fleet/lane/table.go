package lane

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

const (
	tableParts = 256
	// evictionSample is the number of idle lanes of which the longest idle is dropped.
	evictionSample = 8
)

// table holds the lanes of a process by the places of their items. A lane that is dropped costs the
// next request of its bucket a read or a write. All its state is in the table too.
type table struct {
	seed    maphash.Seed
	most    int           // lanes of a part, idle ones; more are held only while they have work
	created atomic.Uint64 // lanes so far
	parts   [tableParts]tablePart
}

// tablePart is a part of the lanes. Its lock is taken before that of a lane.
type tablePart struct {
	mu    sync.Mutex
	lanes map[place]*Lane
	_     [48]byte // a cache line of its own
}

func (t *table) init(most int) {
	t.seed = maphash.MakeSeed()
	t.most = max(1, most/tableParts)
	for i := range t.parts {
		t.parts[i].lanes = make(map[place]*Lane)
	}
}

// evict drops the longest idle of a few lanes. The part must be locked.
func (p *tablePart) evict() {
	var oldest *Lane
	var since time.Time
	sampled := 0
	for _, l := range p.lanes {
		if used, idle := l.idle(); idle && (oldest == nil || used.Before(since)) {
			oldest, since = l, used
		}
		if sampled++; sampled == evictionSample {
			break
		}
	}
	if oldest != nil {
		delete(p.lanes, oldest.site.place(oldest.index))
	}
}

// all returns the lanes.
func (t *table) all() []*Lane {
	var lanes []*Lane
	for i := range t.parts {
		p := &t.parts[i]
		p.mu.Lock()
		for _, l := range p.lanes {
			lanes = append(lanes, l)
		}
		p.mu.Unlock()
	}
	return lanes
}

// part returns the part of a table that a place is in.
func (p *place) part(seed maphash.Seed) int {
	const spread = 0x9e3779b97f4a7c15
	sum := maphash.String(seed, p.entity) + spread*(maphash.String(seed, p.resource)+spread*(p.variant+uint64(p.index))) // #nosec G115 -- an index is not below 0
	return int(sum >> 32 % tableParts)                                                                                   // #nosec G115 -- few
}

// Count returns the number of lanes held now.
func (t *table) Count() int {
	n := 0
	for i := range t.parts {
		p := &t.parts[i]
		p.mu.Lock()
		n += len(p.lanes)
		p.mu.Unlock()
	}
	return n
}

// Memory is the newest state of an item that a lane saw.
type Memory struct {
	Site  Site
	Index int // of the shard
	State *schema.Bucket
}

// Memories returns the newest states of items that the lanes saw, of those that are there.
func (t *table) Memories() []Memory {
	var all []Memory
	for _, l := range t.all() {
		l.mu.Lock()
		if l.view.state != nil {
			all = append(all, Memory{l.site, l.index, l.view.state})
		}
		l.mu.Unlock()
	}
	return all
}
