package lease

import "github.com/ratelimit/ratelimit/pkg/tokenbucket"

// Verdict is the answer of a lease to a request.
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
func (h *Holder) Count(now int64, draws []Draw) { h.known.demand.count(now, draws) }

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
	if h.duties.returning(now) {
		return Centre
	}
	if !h.serves {
		return h.duties.without(now, draws)
	}
	inTime := 1.5*h.known.rtt <= float64(patience)
	for _, d := range draws {
		free := h.cands.least(d.Limit, now) - h.kept[d.Limit]
		if free >= d.Need {
			continue
		}
		whole := h.limits[d.Limit].Capacity
		switch {
		case d.Need > portion(whole, h.cands[0].room) && free+h.known.view.tokens(d.Limit, now) >= d.Need:
			return Centre // more than the lease holds at once
		case !inTime || d.Need > whole:
			return Denied
		case h.State().InFlight() && h.life.flight.brings:
			return Wait
		case !h.duties.mayPull(d.Limit, now):
			return Denied
		}
	}
	if h.State().InFlight() {
		return Wait
	}
	h.duties.pull = true
	return Pull
}

// Report returns the balance of a limit that a caller is told: the stock, the centre as it
// was seen and refilled since, and the stocks of other holders by their hints, at most the
// capacity. need is the balance that the request had to find. Where it was denied, the
// balance is below need by the refill of the whole bucket until the lease may cover it.
func (h *Holder) Report(l int, now, need int64, admitted bool) tokenbucket.Bucket {
	p := h.limits[l]
	stock := h.cands.least(l, now) - h.kept[l]
	tokens := stock + h.known.view.tokens(l, now) + millitokens(h.known.others(now)*float64(p.Capacity), p.Capacity)
	if !admitted {
		missing := millitokens(float64(h.duties.wait(l, now, need))*float64(p.Amount)/float64(p.Period), tokenbucket.MaxCapacity)
		tokens = min(tokens, need-max(missing, 1))
	}
	return tokenbucket.Bucket{Tokens: min(tokens, p.Capacity), Refilled: now}
}

// Overdraft returns how far a charge may take the stock of a limit below zero, in
// millitokens: the refill of the lease in a few milliseconds, but not below the limit's
// debt floor, and nothing beside a centre in debt. A crash loses at most that.
func (h *Holder) Overdraft(l int, now, floor int64) int64 {
	const refill = 50 // ms
	if !h.serves || h.known.view.tokens(l, now) < 0 {
		return 0
	}
	c := &h.cands[0]
	own := float64(c.params[l].Amount) / float64(c.params[l].Period) * refill
	return min(millitokens(own, c.params[l].Capacity), max(-floor, 0))
}

// Wanted reports whether a lease is held, or asked for. Then plain writes should wait, if
// they can: each one refuses the lease writes of all replicas that are in flight.
func (h *Holder) Wanted(now int64) bool {
	return h.State() != None && h.State() != Ended || !h.duties.returning(now) && h.known.worth(now)
}
