package lane

import (
	"sync"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Predecessors are the replicas of lanes of one process that have ended: their leases are over. The zero Predecessors has
// none. It is safe for concurrent use.
type Predecessors struct {
	mu       sync.Mutex
	replicas []uint32 // the newest first
}

// maxPredecessors is how many are remembered.
const maxPredecessors = 8

func (p *Predecessors) add(replica uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replicas = append([]uint32{replica}, p.replicas[:min(len(p.replicas), maxPredecessors-1)]...)
}

// lessee returns one whose lease is in an item yet. A nil p has none.
func (p *Predecessors) lessee(item *schema.Bucket) (replica uint32, ok bool) {
	if p == nil || item == nil {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, before := range p.replicas {
		if item.Lease(before) != nil {
			return before, true
		}
	}
	return 0, false
}
