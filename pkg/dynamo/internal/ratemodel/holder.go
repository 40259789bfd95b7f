package ratemodel

// candidate is a lease that the slot may hold: the one that it is known to hold, or
// the result of a lease write that is under way.
type candidate struct {
	id      int64
	serial  int64 // n and epoch of the item that the write is pinned to
	epoch   int64
	limits  [maxLimits]limit
	rate    int64 // parts of the rate that refill it
	granted int64 // the same, once the write is known to be applied
	room    int64 // parts of the room
	stock   [maxLimits]int64
	lost    [maxLimits]int64 // units that the rate was good for and the stock did not get
	at      int64            // the clock up to which it is refilled
	endMono int64
	endWall int64
}

func (c *candidate) refill(now int64) {
	dt := now - c.at
	if dt <= 0 {
		return
	}
	c.at = now
	for l, lim := range c.limits {
		gain := min(lim.amount*c.rate*dt, max(0, lim.room(c.room)-c.stock[l]))
		c.stock[l] += gain
		c.lost[l] += lim.amount*c.granted*dt - gain
	}
}

// holder is a lease of this replica on an item. The first candidate is the slot as
// it is known to be.
type holder struct {
	slot  int
	cands []*candidate
	held  [maxLimits]int64 // units kept for large requests
}

// refill brings each candidate up to now.
func (h *holder) refill(now int64) {
	for _, c := range h.cands {
		c.refill(now)
	}
}

func (h *holder) find(id int64) *candidate {
	if h == nil {
		return nil
	}
	for _, c := range h.cands {
		if c.id == id {
			return c
		}
	}
	return nil
}

// settle keeps the candidates that a state of the item allows: the one of its slot, and
// those whose writes are pinned to this very state. It reports that none is left.
func (h *holder) settle(it *item) bool {
	var held *candidate
	var open []*candidate
	for _, c := range h.cands {
		switch {
		case c.id == it[slotID(h.slot)] && held == nil:
			held = c
		case c.serial == it[attrCount] && c.epoch == it[attrEpoch] && c != held:
			open = append(open, c)
		}
	}
	if held == nil || held.id == 0 && len(open) == 0 {
		return true
	}
	held.rate = held.granted
	h.cands = append([]*candidate{held}, open...)
	return false
}

// free is the stock that every candidate has beyond the held units.
func (h *holder) free(g Guard, l int) int64 {
	n := h.cands[0].stock[l]
	if g != ServeByAll {
		for _, c := range h.cands[1:] {
			n = min(n, c.stock[l])
		}
	}
	return n - h.held[l]
}

func (h *holder) spend(l int, units int64) {
	for _, c := range h.cands {
		c.stock[l] -= units
	}
}

// tokens is the whole tokens that the lease has for a request.
func (h *holder) tokens(g Guard, l int) int64 {
	return max(0, h.free(g, l)) / max(1, h.cands[0].limits[l].units(1))
}
