package lane

import (
	"sync"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// predecessors are the replicas of lanes of this process that have ended: their leases are over. It is safe for concurrent
// use.
type predecessors struct {
	mu       sync.Mutex
	replicas []uint32 // the newest first
}

// maxPredecessors is how many are remembered.
const maxPredecessors = 8

func (p *predecessors) add(replica uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replicas = append([]uint32{replica}, p.replicas[:min(len(p.replicas), maxPredecessors-1)]...)
}

// lessee returns one whose lease is in an item yet.
func (p *predecessors) lessee(item *schema.Bucket) (replica uint32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, before := range p.replicas {
		if item != nil && item.Lease(before) != nil {
			return before, true
		}
	}
	return 0, false
}

// Follow makes the lanes the next ones of a process. It is called before their first request.
func (s *Lanes) Follow(before *Lanes) { s.before = before.before }

// HandOver stops the lanes as [Lanes.Stop] does, in favour of those that follow. These get the owed requests that are not
// applied, or are takes in doubt. Messages under way end first. Leases are not returned: their server is gone. The
// next lanes free what of them is in items, and count it as spent.
func (s *Lanes) HandOver(to *Lanes) {
	s.closing.Store(true)
	adopt := func(r *Request) {
		to.Send(r) // rule: a server that came back gets what is owed
	}
	s.heir.Store(&adopt)
	s.refuse()
	s.work.wait() // rule: messages under way have their replies, which say whether what is owed was written
	s.Stop()
	s.before.add(s.self.replica()) // rule: leases of the lanes before are freed at once
}
