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

// Lately returns the requests of the last moments, in one ms: 0 a while after the last one.
func (h *Holder) Lately(now int64) float64 { return h.known.demand.lately(now) }

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
		whole, there := h.limits[d.Limit].Capacity, free+h.known.view.tokens(d.Limit, now)
		switch {
		case there >= d.Need && h.beyond(d.Limit, d.Need):
			return Centre // more than the lease holds at once
		case !inTime || d.Need > whole:
			return Denied
		case h.State().InFlight() && h.life.flight.brings:
			return Wait
		case there < d.Need && now < h.duties.pace.next, !h.duties.mayPull(d.Limit, now):
			return Denied
		}
	}
	if h.State().InFlight() {
		return Wait
	}
	h.duties.pull = true
	for _, d := range draws {
		h.known.need[d.Limit] = max(h.known.need[d.Limit], d.Need+h.kept[d.Limit])
	}
	return Pull
}

// beyond reports whether a need is more than the lease has room for.
func (h *Holder) beyond(l int, need int64) bool {
	return need > portion(h.limits[l].Capacity, h.cands[0].room)
}

// unusual reports whether a need is that of many usual requests.
func (h *Holder) unusual(l int, now, need int64) bool { return need/manyUsual > h.known.cost(l, now) }

// Report returns the balance of a limit for the answer to a caller. It is the sum of
// three parts, at most the capacity: the stock, the centre as seen and refilled since,
// and the stocks of other holders by their hints. need is the balance that the request
// had to find. Where it was denied, the balance is below need by the refill of the whole
// bucket until the lease may cover it. It hides nothing that the usual request would get.
func (h *Holder) Report(l int, now, need int64, admitted bool) tokenbucket.Bucket {
	p := h.limits[l]
	stock, centre := h.cands.least(l, now)-h.kept[l], h.known.view.tokens(l, now)
	tokens := stock + centre + millitokens(h.known.others(now)*float64(p.Capacity), p.Capacity)
	if !admitted {
		missing := millitokens(float64(h.duties.wait(l, now, need))*float64(p.Amount)/float64(p.Period), tokenbucket.MaxCapacity)
		told := need - max(missing, 1)
		if h.beyond(l, need) || h.unusual(l, now, need) { // smaller ones get the tokens of the centre
			stock += centre
		}
		if stock >= h.known.cost(l, now) {
			told = max(told, min(stock, need-1))
		}
		tokens = min(tokens, told)
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
	return h.State() != None && h.State() != Ended || !h.duties.returning(now) && h.duties.wants(now)
}
