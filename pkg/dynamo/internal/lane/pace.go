package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

const (
	// leastPace is the least time between two writes of a lane while one of them has no
	// reply. It is the pace of one replica alone.
	leastPace = 4 * time.Millisecond
	// paceEach is the time that each replica of an item leaves to one write: a lane's pace
	// is at least n times as long. So n replicas together stay below the 1,000 writes a
	// second that DynamoDB does for one item, with a part of them refused.
	paceEach = 1060 * time.Microsecond
	// peerMemory is for how long a replica counts after its id last changed on an item.
	peerMemory = 2 * time.Second
	// mostPeers bounds the replicas that count.
	mostPeers = 1000

	// firstTrip is the round trip that a lane reckons with before its first reply.
	firstTrip = 5 * time.Millisecond
	// tripWeight is the weight of the newest round trip in the mean, as one in so many.
	tripWeight = 10
	// mostTrip bounds the round trips that a lane reckons with: one lost reply says little.
	mostTrip = 200 * time.Millisecond
	// tripAttempts is how many mean round trips a message may take.
	tripAttempts = 4
)

// pace is when a lane sends its writes, and what it knows of round trips.
type pace struct {
	sent  time.Time     // the last write
	trip  time.Duration // mean round trip; 0 = no reply yet
	tries int           // messages in a row that were not applied for want of capacity
	rest  time.Time     // nothing is sent before
}

// reply takes in the time that a message took.
func (p *pace) reply(took time.Duration) {
	p.tries, p.rest = 0, time.Time{}
	took = min(max(took, 0), mostTrip)
	if p.trip == 0 {
		p.trip = took
		return
	}
	p.trip += (took - p.trip) / tripWeight
}

// attempt returns how long a message may take: longer where replies take long, or a table that
// is slow would be asked everything twice.
func (p *pace) attempt(least time.Duration) time.Duration {
	return max(least, tripAttempts*p.trip)
}

// roundTrip returns the time that a write takes, about.
func (p *pace) roundTrip() time.Duration {
	if p.trip == 0 {
		return firstTrip
	}
	return p.trip
}

// next returns when a write may be sent, with so many under way and replicas of the item.
// A lane alone on its item waits for nothing while no write of it is under way. Where a reply
// takes longer than callers wait, more writes under way would answer none of them sooner: there
// are two, mostly.
func (p *pace) next(flights, replicas int) time.Time {
	each := time.Duration(replicas) * paceEach
	at := time.Time{}
	switch {
	case flights > 0:
		at = p.sent.Add(max(leastPace, each, p.roundTrip()/2))
	case replicas > 1:
		at = p.sent.Add(each)
	}
	if p.rest.After(at) {
		at = p.rest
	}
	return at
}

// peers are the other replicas of an item, by the ids that they leave in its slots. There may
// be more of them than slots: the ids of two that share one take turns in it.
type peers struct {
	known bool
	seen  time.Time // when the slots were last seen
	of    map[uint32]peer
}

// peer is another replica as the slots showed it.
type peer struct {
	last schema.WriteID
	at   time.Time // when the id changed last; zero = it was there when the item was first seen
	long bool      // it changed after the slots had not been seen for peerMemory: it may have been long ago
}

// observe takes in the ids of an item's slots. Those of this replica are left out.
func (p *peers) observe(ids []schema.WriteID, self uint32, now time.Time) {
	next := make(map[uint32]peer, len(p.of)+1)
	long := now.Sub(p.seen) >= peerMemory
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
			seen.last = id // it does not tell when it was
		case !ok || seen.last.Number() < id.Number():
			seen = peer{id, now, long}
		}
		next[replica] = seen
	}
	p.of, p.known, p.seen = next, true, now
}

// first reports whether no other replica that wrote to the item lately has a lower number.
func (p *peers) first(self uint32, now time.Time) bool {
	for id, seen := range p.of {
		if id < self && seen.fresh(now) {
			return false
		}
	}
	return true
}

// fresh reports whether the replica wrote lately.
func (p peer) fresh(now time.Time) bool { return !p.at.IsZero() && now.Sub(p.at) < peerMemory }

// count returns how many other replicas wrote to the item lately, as far as the ids can tell,
// and how many of them are known to have.
func (p *peers) count(now time.Time) (all, active int) {
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
