package lane

import "time"

const (
	// Least is the least time between two writes of a lane while one of them has no
	// reply. It is the pace of one replica alone.
	Least = 4 * time.Millisecond
	// Each is the time that each replica of an item leaves to one write: a lane's pace
	// is at least n times as long. So n replicas together stay below the 1,000 writes a
	// second that DynamoDB does for one item, with a part of them refused.
	Each = 1060 * time.Microsecond

	// firstTrip is the round trip that a lane reckons with before its first reply.
	firstTrip = 5 * time.Millisecond
	// tripWeight is the weight of the newest round trip in the mean, as one in that
	// many.
	tripWeight = 10
	// mostTrip bounds the round trips that a lane reckons with: one lost reply says little.
	mostTrip = 200 * time.Millisecond
	// tripAttempts is how many mean round trips a message may take.
	tripAttempts = 4

	// The pauses of a lane after messages that DynamoDB had no capacity for.
	firstPause, longestPause = 4 * time.Millisecond, 400 * time.Millisecond
)

// Pace decides when a lane may send its next write, by its last writes and the round trips of
// its messages. The zero Pace has seen no message. It must be locked by its user.
type Pace struct {
	sent  time.Time     // the last write; zero = the next one waits for none
	trip  time.Duration // mean round trip; 0 = no reply yet
	tries int           // messages in a row that were not applied for want of capacity
	rest  time.Time     // nothing is sent before
}

// Sent notes that a write leaves now.
func (p *Pace) Sent(now time.Time) { p.sent = now }

// Again has the next write wait for no other one.
func (p *Pace) Again() { p.sent = time.Time{} }

// Throttled notes a message that DynamoDB had no capacity for. The next one waits about twice as
// long as after the last such message, from 4 ms to 400 ms. draw returns a random number below n.
func (p *Pace) Throttled(now time.Time, draw func(n int64) int64) {
	p.tries++
	pause := min(firstPause<<min(p.tries-1, 10), longestPause)
	p.rest = now.Add(pause/2 + time.Duration(draw(int64(pause/2))))
}

// Reply takes in the time that a message took.
func (p *Pace) Reply(took time.Duration) {
	p.tries, p.rest = 0, time.Time{}
	took = min(max(took, 0), mostTrip)
	if p.trip == 0 {
		p.trip = took
		return
	}
	p.trip += (took - p.trip) / tripWeight
}

// Attempt returns how long a message may take: longer where replies take long, or a table that
// is slow would be asked everything twice.
func (p *Pace) Attempt(least time.Duration) time.Duration {
	return max(least, tripAttempts*p.trip) // rule: a slow table has longer for a reply
}

// RoundTrip returns the time that a write takes, about.
func (p *Pace) RoundTrip() time.Duration {
	if p.trip == 0 {
		return firstTrip
	}
	return p.trip
}

// Next returns when a write may be sent, with that many under way and replicas of the item. A
// lane alone on its item waits for nothing while no write of it is under way. Where a reply
// takes longer than callers wait, more writes under way would answer none of them sooner: there
// are two, mostly.
func (p *Pace) Next(flights, replicas int) time.Time {
	at := p.sent.Add(p.Pause(flights, replicas))
	if flights == 0 && replicas <= 1 {
		at = time.Time{}
	}
	if p.rest.After(at) {
		at = p.rest
	}
	return at
}

// Pause returns the time between two writes, with that many messages under way and replicas of the item.
func (p *Pace) Pause(flights, replicas int) time.Duration {
	each := time.Duration(replicas) * Each
	switch {
	case flights > 0:
		return max(Least, each, p.RoundTrip()/2) // rule: many replicas write more slowly
	case replicas > 1:
		return each
	}
	return 0
}
