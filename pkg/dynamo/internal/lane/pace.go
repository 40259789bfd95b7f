package lane

import "time"

const (
	// leastPace is the least time between two writes of a lane while one of them has no
	// reply. It is the pace of one replica alone.
	leastPace = 4 * time.Millisecond
	// paceEach is the time that each replica of an item leaves to one write: a lane's pace
	// is at least n times as long, so that n replicas write 1,250 times a second at most.
	paceEach = 800 * time.Microsecond
	// peerMemory is for how long a replica counts after its id last changed on an item.
	peerMemory = 2 * time.Second

	// firstTrip is the round trip that a lane reckons with before its first reply.
	firstTrip = 5 * time.Millisecond
	// tripWeight is the weight of the newest round trip in the mean, as one in so many.
	tripWeight = 10
	// mostTrip bounds the round trips that a lane reckons with: one lost reply says little.
	mostTrip = 200 * time.Millisecond
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

// roundTrip returns the time that a write takes, about.
func (p *pace) roundTrip() time.Duration {
	if p.trip == 0 {
		return firstTrip
	}
	return p.trip
}

// next returns when a write may be sent, with so many under way and replicas of the item.
// A lane alone on its item waits for nothing while no write of it is under way.
func (p *pace) next(flights, replicas int) time.Time {
	each := time.Duration(replicas) * paceEach
	at := time.Time{}
	switch {
	case flights > 0:
		at = p.sent.Add(max(leastPace, each))
	case replicas > 1:
		at = p.sent.Add(each)
	}
	if p.rest.After(at) {
		at = p.rest
	}
	return at
}

// peers are the other replicas of an item, by the ids that they leave in its slots.
type peers struct {
	known bool
	ids   []string
	seen  []time.Time // when the id changed last
}

// observe takes in the ids of an item's slots. Those of this replica are left out, as "".
func (p *peers) observe(ids []string, now time.Time) {
	if len(p.ids) != len(ids) {
		p.ids, p.seen = make([]string, len(ids)), make([]time.Time, len(ids))
	}
	for i, id := range ids {
		if id == p.ids[i] {
			continue
		}
		p.ids[i], p.seen[i] = id, now
		if id == "" || !p.known {
			p.seen[i] = time.Time{} // the first state does not tell when it was
		}
	}
	p.known = true
}

// count returns how many other replicas wrote to the item lately.
func (p *peers) count(now time.Time) int {
	n := 0
	for _, at := range p.seen {
		if !at.IsZero() && now.Sub(at) < peerMemory {
			n++
		}
	}
	return n
}
