package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

const (
	// PeerMemory is for how long a replica counts after its id last changed on an item.
	PeerMemory = 2 * time.Second
	// mostPeers bounds the replicas that count.
	mostPeers = 1000
)

// Peers are the other replicas of an item, by the ids that they leave in its slots. There may
// be more of them than slots: the ids of two that share one take turns in it.
type Peers struct {
	known bool
	seen  time.Time // when the slots were last seen
	of    map[uint32]peer
}

// peer is another replica as the slots showed it.
type peer struct {
	last schema.WriteID
	at   time.Time // when the id changed last; zero = it was there when the item was first seen
	long bool      // it changed after the slots had not been seen for PeerMemory: it may have been long ago
}

// Observe takes in the ids of an item's slots. Those of this replica are left out.
func (p *Peers) Observe(ids []schema.WriteID, self uint32, now time.Time) {
	next := make(map[uint32]peer, len(p.of)+1)
	long := now.Sub(p.seen) >= PeerMemory
	for id, seen := range p.of {
		if seen.fresh(now) && len(next) < mostPeers {
			next[id] = seen
		}
	}
	for _, id := range ids {
		replica := id.Replica()
		if id == "" || replica == self {
			continue
		}
		seen, ok := next[replica]
		if !ok {
			seen, ok = p.of[replica]
		}
		switch {
		case !ok && !p.known:
			seen.last = id // its time is not known // rule: the first state tells of no other replica
		case !ok || seen.last.Number() < id.Number():
			seen = peer{id, now, long}
		}
		next[replica] = seen
	}
	p.of, p.known, p.seen = next, true, now
}

// First reports whether no other replica that wrote to the item lately has a lower number.
func (p *Peers) First(self uint32, now time.Time) bool {
	for id, seen := range p.of {
		if id < self && seen.fresh(now) {
			return false
		}
	}
	return true
}

// Count returns how many other replicas wrote to the item lately, as far as the ids show.
// active is how many of them certainly did.
func (p *Peers) Count(now time.Time) (all, active int) {
	for _, seen := range p.of {
		if !seen.fresh(now) {
			continue
		}
		if all++; !seen.long {
			active++
		}
	}
	return all, active
}

// Has reports whether a replica wrote to the item lately, as far as the ids show.
func (p *Peers) Has(replica uint32, now time.Time) bool { return p.of[replica].fresh(now) }

// Any reports whether one of the replicas that certainly wrote to the item lately is such a one.
func (p *Peers) Any(now time.Time, such func(replica uint32) bool) bool {
	for id, seen := range p.of {
		if seen.fresh(now) && !seen.long && such(id) {
			return true
		}
	}
	return false
}

// fresh reports whether the replica wrote lately.
func (p peer) fresh(now time.Time) bool { return !p.at.IsZero() && now.Sub(p.at) < PeerMemory }
