package lease_test

import (
	"math"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	deadline  = 15.0 // ms that a caller waits
	plainPace = 4.0  // ms between plain writes
)

// call is a request for tokens, in millitokens.
type call struct {
	began    float64
	cost     int64
	done     bool
	inFlight bool
	late     bool // decided and admitted after its deadline
}

// lane is a replica: it decides calls by its lease, by plain writes, or late.
type lane struct {
	fleet   *fleet
	index   int
	holder  *lease.Holder
	view    lease.View
	seen    bool
	sent    float64 // of the request that brought the view
	rtt     float64
	queue   []*call
	owed    int64 // millitokens that were admitted late and are not booked
	taking  int64 // millitokens of plain takes in flight
	plain   int   // plain writes in flight
	last    float64
	wakes   int64
	waiting bool // for the pace of plain writes
}

func newLane(f *fleet, index int) *lane {
	return &lane{
		fleet: f, index: index, rtt: f.scenario.median * 1.1, last: -1000, wakes: math.MaxInt64,
		holder: lease.New(f.item.limits, limiter.LeasePolicy{}, 0),
	}
}

func (l *lane) draws(c *call) []lease.Draw {
	return []lease.Draw{{Limit: 0, Need: c.cost, Take: c.cost}}
}

// arrive decides a call, or queues it.
func (l *lane) arrive(c *call) {
	f := l.fleet
	l.holder.Count(f.ms(), l.draws(c))
	if !l.decide(c) {
		l.queue = append(l.queue, c)
		f.after(deadline, func() { l.expire(c) })
	}
	l.run()
}

// decide decides a call by the lease, and reports whether it did.
func (l *lane) decide(c *call) bool {
	f := l.fleet
	left := int64(c.began + deadline - f.now)
	verdict := l.holder.Take(f.ms(), left, l.draws(c))
	if verdict == lease.Admitted && !l.holder.Alive(f.clock()) {
		verdict = lease.Centre
	}
	switch verdict {
	case lease.Admitted:
		f.outcome.admit(c, float64(f.ms()))
		return true
	case lease.Denied:
		f.outcome.deny(c)
		return true
	case lease.Wait, lease.Pull:
	case lease.Centre:
		if l.seen && l.view.Exists && l.tokens() < c.cost {
			f.outcome.deny(c)
			return true
		}
	}
	return false
}

// tokens is the estimated balance of the centre beyond the own takes in flight.
func (l *lane) tokens() int64 {
	return l.view.Centre[0].Available(l.view.Params[0], l.fleet.ms()) - l.taking - l.owed
}

// run sends the writes that are due.
func (l *lane) run() {
	f := l.fleet
	if l.holder.Due(f.ms()) {
		l.ask()
	}
	l.pay()
	if (len(l.queue) > 0 || l.owed > 0) && !l.holder.Wanted(f.ms()) {
		l.write()
	}
	l.arm()
}

// arm sets the timer of the holder.
func (l *lane) arm() {
	at := l.holder.Wake()
	if at == l.wakes || at == math.MaxInt64 {
		return
	}
	l.wakes = at
	l.fleet.after(max(float64(at)-l.fleet.now, 0.01), func() {
		if l.wakes == at {
			l.wakes = math.MaxInt64
			l.ask()
			l.run()
		}
	})
}

// ask sends the lease write that is due.
func (l *lane) ask() {
	f := l.fleet
	l.holder.Tune(limiter.LeasePolicy{}, l.rtt)
	p, ok := l.holder.Ask(f.ms(), f.clock(), f.random.Float64())
	if !ok {
		return
	}
	l.send(func() bool { return f.item.apply(l.index, p) }, func(bool) {})
}

// send sends a write and has the reply seen, then handled.
func (l *lane) send(apply func() bool, reply func(applied bool)) {
	f := l.fleet
	latency, sent := f.latency(), f.now
	f.after(latency/2, func() {
		f.outcome.writes++
		ok := apply()
		if !ok {
			f.outcome.refused++
		}
		view := f.item.view(l.index)
		f.after(latency/2, func() {
			l.rtt = 0.9*l.rtt + 0.1*latency
			if !l.seen || l.view.Version.Serial < view.Version.Serial {
				l.view, l.seen, l.sent = view, true, sent
			}
			l.holder.Seen(f.ms(), f.clock(), view)
			reply(ok)
			l.retry()
			l.run()
		})
	})
}

// retry decides the queued calls by the state of now.
func (l *lane) retry() {
	queue := l.queue
	l.queue = nil
	for _, c := range queue {
		if !l.decide(c) {
			l.queue = append(l.queue, c)
		}
	}
}

// pay charges late admissions to the lease.
func (l *lane) pay() {
	if l.owed > 0 {
		l.owed = l.holder.Charge(l.fleet.ms(), 0, l.owed, 0)
	}
}

// write sends a plain write: the queue, as far as tokens are there, and owed tokens.
func (l *lane) write() {
	f := l.fleet
	if l.plain > 0 && (!l.seen || f.now < l.last+plainPace-1e-9) {
		if l.seen && !l.waiting {
			l.waiting = true
			f.after(l.last+plainPace-f.now, func() { l.waiting = false; l.run() })
		}
		return
	}
	takes, charges := int64(0), l.owed
	var sent, rest []*call
	for _, c := range l.queue {
		if !l.seen || takes+c.cost <= l.tokens() {
			takes += c.cost
			c.inFlight = true
			sent = append(sent, c)
		} else {
			rest = append(rest, c)
		}
	}
	if takes+charges == 0 {
		return
	}
	l.queue, l.owed, l.last = rest, 0, f.now
	l.taking += takes + charges
	l.plain++
	now, version := f.ms(), l.view.Version
	l.send(func() bool { return f.item.take(version, now, takes, charges) }, func(ok bool) {
		l.plain--
		l.taking -= takes + charges
		l.taken(sent, charges, now, ok)
	})
}

// taken ends the calls of a plain write.
func (l *lane) taken(sent []*call, charges, planned int64, ok bool) {
	if !ok {
		l.owed += charges
	}
	for _, c := range sent {
		c.inFlight = false
		switch {
		case ok && c.done && !c.late:
			l.owed -= c.cost
		case ok && !c.done:
			l.fleet.outcome.admit(c, float64(planned))
		case !ok && c.late:
			l.owed += c.cost
		case !ok && !c.done:
			l.queue = append(l.queue, c)
		}
	}
}

// expire decides a call late, by the state that was seen last.
func (l *lane) expire(c *call) {
	if c.done {
		return
	}
	f := l.fleet
	f.outcome.late++
	n := float64(f.scenario.replicas)
	whole := float64(f.item.limits[0].Capacity)
	est := whole / 16
	if l.seen && l.view.Exists {
		tokens := float64(l.view.Centre[0].Available(l.view.Params[0], int64(l.sent)))
		rate := float64(f.item.limits[0].Amount) / float64(f.item.limits[0].Period)
		est = min((tokens-rate*l.rtt*1.5)/n-float64(l.taking), max(whole/16, tokens/2/n))
	}
	est -= float64(l.owed)
	for i, q := range l.queue {
		if q == c {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			break
		}
	}
	switch {
	case c.inFlight && est >= 0:
		c.late = true
		f.outcome.admit(c, float64(f.ms()))
	case !c.inFlight && est >= float64(c.cost):
		c.late = true
		l.owed += c.cost
		f.outcome.admit(c, float64(f.ms()))
	default:
		f.outcome.deny(c)
	}
}
