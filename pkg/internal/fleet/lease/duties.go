package lease

import (
	"math"
	"slices"
)

// mostOpen is how many lease writes may be without an outcome: until an image shows it,
// no further one is planned.
const mostOpen = 4

// manyUsual is how many usual requests are worth a lease write.
const manyUsual = 8

// duties says which lease write is due, and when.
type duties struct {
	stock *Stock
	known *known
	state State
	pace  pace
	seq   uint16 // of the last slot that was sent

	asked  int64 // until then the view asks for all leases
	recall bool  // all is to be returned
	pull   bool  // a request waits for more

	stays int64 // ms for which the lease is kept without a request, at least
	left  int64 // time of the last return for want of requests; 0 = a lease was asked for since
	firm  int64 // time of the last request, where the rate stays though the demand has fallen

	low   []int64 // by limit: with less in stock more is asked for
	lowAt int64   // time of low
}

// wake returns when Ask is to be called next, if no request comes. It changes with each
// call of Ask, Seen, Failed and Settle.
func (d *duties) wake() int64 {
	switch {
	case d.state.InFlight() || d.state == Unsettled || len(d.stock.cands) > mostOpen:
		return forever
	case d.stock.serves && d.keeps() && d.recalled(): // the return waits for Settle
		return forever
	case d.stock.serves && (d.keeps() || d.recalled()):
		return d.pace.next
	case d.stock.serves:
		return min(d.pace.next, d.idleAt(), d.fallsAt())
	case d.known.view.HasOwn:
		return d.pace.next
	default:
		return forever
	}
}

// due reports whether Ask is to be called now. It is cheap: it is asked after each request.
func (d *duties) due(now int64) bool {
	if d.state.InFlight() || d.state == Unsettled {
		return false
	}
	if !d.stock.serves && d.known.view.HasOwn && d.recalled() { // others wait for the slot to go
		return now >= d.pace.next
	}
	return d.pull || d.stock.serves && (now >= d.pace.next || d.short(now))
}

// returning reports whether the lease is to be returned, with demand or without.
func (d *duties) returning(now int64) bool {
	return d.recall || d.known.policy.None || now < d.asked // rule: a lease is returned when none is wanted
}

// recalled reports whether the lease is to be returned, by the last call.
func (d *duties) recalled() bool {
	return d.recall || d.known.policy.None || d.asked > 0
}

// hurry makes the next lease write due.
func (d *duties) hurry() { d.pace.next = 0 }

// short reports whether the stock runs out before a reply could bring more, and more may
// be asked for.
func (d *duties) short(now int64) bool {
	if !d.stock.serves {
		return false
	}
	if now-d.lowAt >= foldEvery {
		d.lowAt = now
		for l := range d.low {
			d.low[l] = millitokens(d.known.demand.rate(l, now)*2.5*d.known.rtt, math.MaxInt64)
		}
	}
	for l := range d.low {
		if d.stock.cands[0].buckets[l].Tokens < d.low[l] && d.mayPull(l, now) {
			return true
		}
	}
	return false
}

// mayPull reports whether there may be something of a limit to get, and it is time to ask.
func (d *duties) mayPull(l int, now int64) bool {
	if now >= d.pace.next {
		return true
	}
	demand, requests := d.known.demand.rate(l, now), max(d.known.demand.requests(now), 1e-6)
	worth := max(manyUsual*demand/requests, demand*max(0.1*float64(min(d.pace.every, mostScarce)), d.known.rtt))
	part := float64(d.known.view.tokens(l, now)) / float64(d.known.holders())
	return part >= worth && (now-d.pace.asked >= 10 || d.known.seen >= d.pace.asked)
}

// idleAt returns when the lease is to be returned if no request comes.
func (d *duties) idleAt() int64 {
	return max(d.quietAt()+d.pace.jitter(d.known.holders()), d.known.began+leastHeld)
}

// quietAt returns until when the demand goes on if no request comes.
func (d *duties) quietAt() int64 {
	last := d.known.demand.last
	return last + max(idle(d.known.demand.requests(last)), d.stays)
}

// wants reports whether the demand is worth a lease, and goes on: a lease that was returned
// as no request came is not asked for again before one does.
func (d *duties) wants(now int64) bool { return now < d.quietAt() && d.known.worth(now) } // rule: no lease is asked for after the demand has ended

// resume takes note that a lease is asked for. Where one was returned a moment ago, as no
// request came, the next is kept for longer.
func (d *duties) resume(now int64) {
	switch {
	case d.left == 0:
	case now-d.left < idleAtMost:
		d.stays = min(max(2*d.stays, 4*idleAtLeast), idleAtMost)
	default:
		d.stays = 0
	}
	d.left = 0
}

// fallsAt returns when the rate of the lease is to be cut if no request comes, because the
// demand has fallen to much less.
func (d *duties) fallsAt() int64 {
	rate := float64(d.stock.cands[0].rate) / Parts
	if rate <= 0.02 || d.firm == d.known.demand.last {
		return forever
	}
	demand := headroom * 2.5 * d.known.binding(d.known.demand.at)
	fades := demandMemory * math.Log(max(demand/rate, 1))
	return max(d.known.demand.at+int64(fades)+1, d.known.began+leastHeld, d.pace.asked+leastHeld)
}

// keeps reports whether a large request waits: then no return is planned.
func (d *duties) keeps() bool {
	return slices.ContainsFunc(d.stock.kept, func(n int64) bool { return n > 0 })
}
