package lease

import "math"

// mostOpen is how many lease writes may be without an outcome: until an image tells, no
// further one is planned.
const mostOpen = 4

// Wake returns when Ask is to be called next, if no request comes. It changes with each
// call of Ask, Seen, Failed and Settle.
func (h *Holder) Wake() int64 {
	switch {
	case h.state.InFlight() || len(h.cands) > mostOpen:
		return forever
	case h.serves && h.keeps() && h.recalled(): // the return waits for Settle
		return forever
	case h.serves && (h.keeps() || h.recalled()):
		return h.pace.next
	case h.serves:
		return min(h.pace.next, h.idleAt(), h.fallsAt())
	case h.view.HasOwn && h.view.Own.Demand == Wish:
		return max(h.pace.next, h.wish)
	case h.view.HasOwn || h.wish > 0:
		return h.pace.next
	default:
		return forever
	}
}

// recalled reports whether the lease is to be returned, as far as the last call told.
func (h *Holder) recalled() bool {
	return h.recall || h.policy.None || h.wish > 0 || h.asked > 0
}

// Due reports whether Ask is to be called now. It is cheap: it is asked after each request.
func (h *Holder) Due(now int64) bool {
	if h.state.InFlight() {
		return false
	}
	return h.pull || h.serves && (now >= h.pace.next || h.short(now))
}

// short reports whether the stock runs out before a reply could bring more, and more may
// be asked for.
func (h *Holder) short(now int64) bool {
	if !h.serves {
		return false
	}
	if now-h.lowAt >= foldEvery {
		h.lowAt = now
		for l := range h.low {
			h.low[l] = millitokens(h.demand.rate(l, now)*2.5*h.rtt, math.MaxInt64)
		}
	}
	for l := range h.low {
		if h.cands[0].buckets[l].Tokens < h.low[l] && h.mayPull(l, now) {
			return true
		}
	}
	return false
}

// mayPull reports whether there may be something of a limit to get, and it is time to ask.
func (h *Holder) mayPull(l int, now int64) bool {
	if now >= h.pace.next {
		return true
	}
	demand, requests := h.demand.rate(l, now), max(h.demand.requests(now), 1e-6)
	worth := max(8*demand/requests, 0.1*demand*float64(min(h.pace.every, mostScarce)))
	part := float64(h.view.tokens(l, now)) / float64(h.holders())
	return part >= worth && (now-h.pace.asked >= 10 || h.seen >= h.pace.asked)
}

// idleAt returns when the lease is to be returned if no request comes.
func (h *Holder) idleAt() int64 {
	idle := h.pace.idle(h.demand.requests(h.demand.last), h.holders())
	return max(h.demand.last+idle, h.began+leastHeld, h.retryAt())
}

// retryAt returns when a refused return is tried again.
func (h *Holder) retryAt() int64 {
	if h.pace.tries > 0 {
		return h.pace.next
	}
	return 0
}

// fallsAt returns when the rate of the lease is to be cut if no request comes, because the
// demand has fallen to much less.
func (h *Holder) fallsAt() int64 {
	rate := float64(h.cands[0].rate) / Parts
	if rate <= 0.02 {
		return forever
	}
	demand := headroom * 2.5 * h.binding(h.demand.at)
	fades := demandMemory * math.Log(max(demand/rate, 1))
	return max(h.demand.at+int64(fades)+1, h.began+leastHeld, h.pace.asked+leastHeld)
}

// binding returns the demand as a part of the rate, of the limit that is short first.
func (h *Holder) binding(now int64) float64 {
	most := 0.0
	for l, p := range h.limits {
		most = max(most, h.demand.rate(l, now)*float64(p.Period)/float64(p.Amount))
	}
	return most
}

// Ask returns the lease write that is due, if one is. It counts as sent: it must be sent at
// once, and once, and its end told by Seen or Failed. The clocks are read before. draw is a
// random number of at least 0 and below 1.
func (h *Holder) Ask(now int64, c Clock, draw float64) (*Plan, bool) {
	if h.serves {
		h.Alive(c)
	}
	if h.state.InFlight() || len(h.cands) > mostOpen {
		return nil, false
	}
	now = max(now, h.latest())
	for i := range h.cands {
		h.cands[i].refill(now)
	}
	p := &Plan{Now: now, Create: !h.view.Exists, Pinned: h.view.Version, clock: c, draw: draw}
	if !h.plan(p) {
		return nil, false
	}
	h.sent(p)
	return p, true
}

// plan fills in the lease write that is due, and reports whether one is.
func (h *Holder) plan(p *Plan) bool {
	due := p.Now >= h.pace.next
	if p.Now >= h.wish {
		h.wish = 0
	}
	if p.Now >= h.asked {
		h.asked = 0
	}
	switch {
	case h.returning(p.Now):
		return h.planRecall(p)
	case h.serves && p.Now >= h.idleAt() && !h.keeps():
		return h.planReturn(p)
	case h.serves && (due || p.Now >= h.fallsAt() || h.pull || h.short(p.Now)):
		return h.planShare(p, Renew)
	case !h.serves && due && h.worth(p.Now) && len(h.view.Others) < MaxHolders:
		return h.planShare(p, Grant)
	case !h.serves && due && h.view.HasOwn:
		return h.planReturn(p)
	}
	return false
}

// planRecall plans the return of the lease, or the wish that all are returned.
func (h *Holder) planRecall(p *Plan) bool {
	if p.Now < h.pace.next || h.keeps() {
		return false
	}
	if p.Now < h.wish && !h.recall {
		wished := !h.serves && h.view.HasOwn && h.view.Own.wishes(p.Now)
		return !wished && h.planWish(p)
	}
	return (h.serves || h.view.HasOwn) && h.planReturn(p)
}

// latest returns the latest time that the centre was refilled to: no plan is earlier.
func (h *Holder) latest() int64 {
	at := int64(0)
	for _, b := range h.view.Centre {
		at = max(at, b.Refilled)
	}
	return at
}
