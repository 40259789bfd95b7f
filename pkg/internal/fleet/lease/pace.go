package lease

const (
	firstEvery  = 50   // ms from a first grant to its renewal
	everyHolder = 10   // ms for each holder: the shortest time between renewals
	everyTrips  = 1.5  // the same, in round trips: renewals that cross refuse each other
	mostScarce  = 650  // ms: the longest, while there is less than is asked for
	mostPlenty  = 2000 // ms: the longest otherwise
	idleAtLeast = 25   // ms without a request after which a lease is returned
	idleAtMost  = 1000 // ms
	idleGaps    = 16   // the same, in mean times between requests
	leastHeld   = 100  // ms that a lease is held at least, if it is not recalled
)

// pace says when the next lease write is due.
type pace struct {
	every int64 // ms between renewals
	next  int64 // time of the next write; before it only urgent changes are written
	asked int64 // time of the last write
	draw  float64
}

// begin starts the pace of a new lease.
func (p *pace) begin() { p.every = firstEvery }

// applied sets the time of the next renewal: soon after a change, else later each time.
func (p *pace) applied(now int64, holders int, rtt float64, scarce, changed bool) {
	least := max(firstEvery, int64(max(everyHolder, everyTrips*rtt)*float64(holders)))
	switch {
	case changed:
		p.every = max(least, min(p.every, 2*least))
	case scarce:
		p.every = max(least, min(2*p.every, mostScarce))
	default:
		p.every = max(least, min(2*p.every, mostPlenty))
	}
	p.next = now + int64(float64(p.every)*(0.9+0.2*p.draw))
}

// refused lets the write be planned anew at once: the image that came with the refusal is
// new, and only a write that no other one comes before is applied.
func (p *pace) refused(now int64) { p.next = now }

// jitter is how long the return of an idle lease is put off, in milliseconds. Without it
// holders that fall idle together would refuse each other's returns.
func (p *pace) jitter(holders int) int64 { return int64(p.draw * 2 * float64(holders)) }

// idle returns how long a demand of that many requests in a ms may be without one until
// it counts as gone, in milliseconds.
func idle(requests float64) int64 {
	return max(idleAtLeast, int64(min(idleGaps/max(requests, 1e-4), idleAtMost)))
}
