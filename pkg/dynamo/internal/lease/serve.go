package lease

import "github.com/ratelimit/ratelimit/pkg/tokenbucket"

// Verdict is what a lease says to a request.
type Verdict uint8

// The verdicts of a lease.
const (
	Admitted Verdict = iota // the draws are taken
	Denied                  // decided: the tokens are not there
	Wait                    // a lease write in flight may bring them before the deadline
	Pull                    // as Wait, and the write is to be asked for now
	Centre                  // the lease does not decide: the centre does
)

// Count counts the demand of an operation that takes or peeks, however it is decided: each
// once.
func (h *Holder) Count(now int64, draws []Draw) { h.demand.count(now, draws) }

// Take decides a request of this item alone: it is spent where the lease covers it. patience
// is how many milliseconds the caller still waits.
func (h *Holder) Take(now, patience int64, draws []Draw) Verdict {
	if !h.Covers(now, draws) {
		return h.Miss(now, patience, draws)
	}
	h.Spend(draws)
	return Admitted
}

// Miss decides a request that the lease does not cover.
func (h *Holder) Miss(now, patience int64, draws []Draw) Verdict {
	if h.returning(now) {
		return Centre
	}
	if !h.serves {
		return h.missWithout(now, draws)
	}
	inTime := 1.5*h.rtt <= float64(patience)
	for _, d := range draws {
		free := h.free(now, d.Limit)
		if free >= d.Need {
			continue
		}
		whole := h.limits[d.Limit].Capacity
		switch {
		case d.Need > portion(whole, h.cands[0].room) && free+h.view.tokens(d.Limit, now) >= d.Need:
			return Centre // more than the lease holds at once
		case !inTime || d.Need > whole:
			return Denied
		case h.state.InFlight() && h.flight.brings:
			return Wait
		case !h.mayPull(d.Limit, now):
			return Denied
		}
	}
	if h.state.InFlight() {
		return Wait
	}
	h.pull = true
	return Pull
}

// missWithout decides a request while no lease is served. Where a lease is worth it, it
// waits for one: plain takes would refuse the grant. Tokens that the centre was seen
// without are not waited for.
func (h *Holder) missWithout(now int64, draws []Draw) Verdict {
	if h.state == Returning || h.state == Clearing {
		return Wait
	}
	if h.state != Granting && !h.worth(now) {
		return Centre
	}
	verdict := Wait
	if h.state != Granting && now >= h.pace.next {
		h.pull, verdict = true, Pull
	}
	for _, d := range draws {
		if h.view.Exists && h.view.tokens(d.Limit, now) < d.Need {
			return Denied
		}
	}
	return verdict
}

// Report returns the balance of a limit that a caller is told: the stock, the centre as it
// was seen and refilled since, and the stocks of other holders by their hints, at most the
// capacity. need is what the request had to find. Where it was denied, the balance is below
// that by what the whole bucket refills until the lease may cover it.
func (h *Holder) Report(l int, now, need int64, admitted bool) tokenbucket.Bucket {
	p := h.limits[l]
	stock := h.free(now, l)
	others := 0.0
	for i := range h.view.Others {
		o := h.other(&h.view.Others[i], now)
		others += o.stock
	}
	tokens := stock + h.view.tokens(l, now) + millitokens(others*float64(p.Capacity), p.Capacity)
	if !admitted {
		missing := millitokens(float64(h.wait(l, now, need))*float64(p.Amount)/float64(p.Period), tokenbucket.MaxCapacity)
		tokens = min(tokens, need-max(missing, 1))
	}
	return tokenbucket.Bucket{Tokens: min(tokens, p.Capacity), Refilled: now}
}

// wait returns in how many milliseconds the lease may cover a request: by its own refill,
// or where that never does, after the next renewal.
func (h *Holder) wait(l int, now, need int64) int64 {
	c := &h.cands[0]
	if own := c.params[l]; own.Amount > 0 {
		if ms, ok := c.buckets[l].RetryAfter(own, need+h.kept[l], now); ok {
			return max(ms, 1)
		}
	}
	return max(h.pace.next-now, 1)
}

// Overdraft returns how far a charge may take the stock of a limit below zero, in
// millitokens: what the lease refills in a few milliseconds, where the limit's debt floor
// and the balance of the centre leave it. A crash of the process loses at most that.
func (h *Holder) Overdraft(l int, now, floor int64) int64 {
	const refill = 50 // ms
	if !h.serves || h.view.tokens(l, now) < 0 {
		return 0
	}
	c := &h.cands[0]
	own := float64(c.params[l].Amount) / float64(c.params[l].Period) * refill
	return min(millitokens(own, c.params[l].Capacity), max(-floor, 0))
}

// Wanted reports whether a lease is held, or asked for. Then plain writes should wait, if
// they can: each one refuses the lease writes of all replicas that are in flight.
func (h *Holder) Wanted(now int64) bool {
	return h.state != None && h.state != Ended || !h.returning(now) && h.worth(now)
}
