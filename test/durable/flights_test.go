package durable_test

import (
	"context"
	"fmt"
	"time"
)

// The limit of requests in flight of the rules, and their longest time.
const (
	inFlight     = 4
	inFlightTime = 10 * time.Second
	// flightsMoveOn is how long an entity is used. Each kill takes places from it until inFlightTime is over.
	flightsMoveOn = 400 * time.Millisecond
)

// flights are the requests in flight over all runs of the program. Those without an answer are not among them.
type flights struct {
	all    []flight
	most   int // in flight at a time, of one entity
	ended  int
	excess []string
}

// flight is a request that was admitted, and whose end was not sent.
type flight struct {
	taking

	entity, id string
}

// add notes an admitted request. It had begun by the end of its call at the latest, beside all those that had
// an answer before it.
func (f *flights) add(of flight) {
	n := 1
	for _, other := range f.all {
		if other.entity == of.entity && other.to <= of.from && of.to-other.from < (inFlightTime-late).Microseconds() {
			n++
		}
	}
	f.all, f.most = append(f.all, of), max(f.most, n)
	if n > inFlight {
		f.excess = append(f.excess, fmt.Sprintf("%s has %d in flight at %d µs, the limit is %d", of.entity, n, of.to, inFlight))
	}
}

// fly begins a request, or ends an earlier one, which may be of an earlier run.
func (c *caller) fly(ctx context.Context, entity string) {
	c.mu.Lock()
	var ends string
	if n := len(c.flights.all); n > 0 && c.r.IntN(2) == 0 {
		i := c.r.IntN(n)
		ends = c.flights.all[i].id
		c.flights.all[i] = c.flights.all[n-1]
		c.flights.all = c.flights.all[:n-1]
		c.flights.ended++
	}
	c.mu.Unlock()
	if ends != "" {
		_, response := c.call(ctx, "reservation_id", ends, 0)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.count(response)
		return
	}
	t, response := c.call(ctx, "slots", entity, 1)
	id := response.GetDynamicMetadata().GetFields()["reservation_id"].GetStringValue()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(response)
	if id != "" {
		c.flights.add(flight{t, entity, id})
	}
}
