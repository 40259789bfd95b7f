package lease

// sent takes note of a plan that is returned to be sent. From then on what it gives is
// not served.
func (h *Holder) sent(p *Plan) {
	h.cands = append(h.cands, granted(h.limits, &h.cands[0], p))
	h.flight = flight{plan: *p, brings: p.brings, change: p.change, scarce: p.scarce}
	h.seq, h.pull = p.Slot.Seq, false
	h.pace.asked, h.pace.draw = p.Now, p.draw
	switch p.Kind {
	case Grant:
		h.happen(grantSent)
	case Renew:
		h.happen(renewalSent)
	case Return, WishBack:
		h.happen(returnSent)
	}
}

// Failed says that a plan that Ask returned got no reply with an image of the item. Where it
// was perhaps applied, its candidate stays until an image tells. Otherwise it surely was
// not, and never will be: it was not sent.
func (h *Holder) Failed(now int64, p *Plan, perhaps bool) {
	if !h.state.InFlight() || p.Slot.Seq != h.flight.plan.Slot.Seq {
		return
	}
	if perhaps {
		h.happen(unanswered)
		if h.state == Ended {
			h.clear()
		}
		h.pace.next = now + h.pace.every
		return
	}
	h.cands = h.cands[:len(h.cands)-1]
	h.refuse(now)
}

// Seen takes note of the item as a reply to any request showed it. It settles all lease
// writes that have no outcome yet: each was planned on the version of an image before, and
// is applied to no other one. An image that is older than one seen before tells nothing.
func (h *Holder) Seen(now int64, c Clock, v View) {
	if !v.Version.after(h.view.Version) {
		return
	}
	h.view, h.seen, h.pull, h.asked = v, now, false, v.recalled(now)
	for i := range h.cands {
		h.cands[i].refill(now)
	}
	h.Alive(c)
	h.settle(now, c)
	if h.serves && h.asked > 0 {
		h.hurry()
	}
}

// settle compares the candidates with the own slot.
func (h *Holder) settle(now int64, c Clock) {
	at := -1
	for i := range h.cands {
		if h.view.HasOwn && (i > 0 || h.cands[0].leases()) && h.cands[i].seq == h.view.Own.Seq {
			at = i
		}
	}
	switch {
	case at > 0:
		h.apply(now, c, at)
	case at < 0 && h.cands[0].leases():
		h.lose(now)
	default:
		h.drop(now)
	}
}

// apply makes a candidate the lease: the slot holds it. None of the others was applied.
func (h *Holder) apply(now int64, c Clock, at int) {
	won, first := h.cands[at], !h.cands[0].leases()
	mine := h.state.InFlight() && won.seq == h.flight.plan.Slot.Seq
	if !won.leases() { // a slot without parts: the centre has none, or all are asked back
		h.gone(now)
		h.pace.applied(now, h.holders(), true, true)
		return
	}
	if !won.alive(c) {
		h.happen(expired)
		h.clear()
		return
	}
	won.confirm(h.limits)
	h.cands = append(h.cands[:0], won)
	h.happen(applied)
	if first {
		h.began = now
		h.term++
		h.pace.begin()
	}
	if mine {
		h.scarce = h.flight.scarce
		h.pace.applied(now, h.holders(), h.scarce, h.flight.change)
	}
}

// drop drops the candidates of lease writes: none of them was applied, unless a removal is
// in flight and the slot is gone.
func (h *Holder) drop(now int64) {
	h.cands = h.cands[:1]
	switch {
	case h.state == Clearing && !h.view.HasOwn && h.flight.plan.Kind == Return, h.state == Ended && !h.view.HasOwn:
		h.gone(now)
	case h.state.InFlight():
		h.refuse(now)
	}
}

// refuse plans the write in flight anew, soon.
func (h *Holder) refuse(now int64) {
	returns := h.state == Returning || h.state == Clearing
	h.happen(refused)
	if returns {
		h.pace.returnRefused(now)
	} else {
		h.pace.refused(now)
	}
}

// lose says that the lease is not in the item any more: it was returned, or another
// replica removed it, or the slot is of a write that this holder has forgotten.
func (h *Holder) lose(now int64) {
	if h.view.HasOwn {
		h.happen(expired)
		h.clear()
		return
	}
	h.gone(now)
}

// gone says that the replica has no lease and no slot with parts.
func (h *Holder) gone(now int64) {
	h.happen(removed)
	h.clear()
	h.pace = pace{every: firstEvery, next: now, draw: h.pace.draw}
}
