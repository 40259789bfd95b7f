package lease

// life is the life of a lease: its state, and the write that is in flight.
type life struct {
	stock  *Stock
	known  *known
	duties *duties
	flight *Plan // the last one that was sent
}

// happen brings the lease into the state that an event leads to. An event that cannot
// happen ends the lease: it costs tokens, and never gives any.
func (l *life) happen(e event) {
	next, ok := l.duties.state.after(e)
	if !ok {
		next = Ended // rule: an impossible event ends the lease
	}
	l.duties.state = next
	l.stock.serves = next.Serves()
}

// end ends the term of the lease.
func (l *life) end() {
	l.happen(expired)
	l.stock.lapse()
}

// alive reports whether the lease is served and not over, and ends one that is.
func (l *life) alive(c Clock) bool {
	if !l.stock.serves && l.duties.state != Unsettled {
		return false
	}
	if !l.stock.cands[0].alive(c) { // rule: a renewal without a reply does not lengthen the term
		l.end()
		return false
	}
	return l.stock.serves
}

// sent takes note of a plan that is returned to be sent. From then on the parts and the
// tokens that it gives are not served.
func (l *life) sent(p *Plan) {
	l.stock.cands = append(l.stock.cands, granted(l.stock.limits, &l.stock.cands[0], p))
	l.flight = p
	d := l.duties
	d.seq, d.pull = p.Slot.Seq, false
	d.pace.asked, d.pace.draw = p.Now, p.draw
	switch p.Kind {
	case Grant:
		l.happen(grantSent)
	case Renew:
		l.happen(renewalSent)
	case Return:
		l.happen(returnSent)
	}
}

// fail ends a plan that got no reply with an image.
func (l *life) fail(now int64, p *Plan, perhaps bool) {
	d := l.duties
	if !d.state.InFlight() || p.Slot.Seq != l.flight.Slot.Seq { // rule: a failure of an older lease write is none of the newest
		return
	}
	if !perhaps {
		l.stock.cands = l.stock.cands[:len(l.stock.cands)-1]
		l.refuse(now)
		return
	} // rule: a lease write without a reply stays a candidate
	l.happen(unanswered)
	if d.state == Ended { // a removal: there is no lease
		l.stock.forget()
	}
	d.pace.next = now + d.pace.every
}

// settle compares the candidates with the own slot of a new image.
func (l *life) settle(now int64, c Clock) {
	v, cands := &l.known.view, l.stock.cands
	at := -1
	for i := range cands {
		if v.HasOwn && (i > 0 || cands[0].leases()) && cands[i].seq == v.Own.Seq {
			at = i
		}
	}
	switch {
	case at > 0:
		l.apply(now, c, at)
	case at < 0 && cands[0].leases(): // rule: a lease that is not in the item is over
		l.lose(now)
	default:
		l.drop(now)
	}
}

// apply makes a candidate the lease: the slot holds it. None of the others was applied.
func (l *life) apply(now int64, c Clock, at int) {
	d := l.duties
	won, first := l.stock.cands[at], !l.stock.cands[0].leases()
	mine := d.state.InFlight() && won.seq == l.flight.Slot.Seq
	if !won.leases() { // a slot without parts: the centre has none, or all are asked back
		l.gone(now)
		d.pace.applied(now, l.known.holders(), l.known.rtt, true, true)
		return
	}
	if !won.alive(c) { // rule: a grant that is seen after its term is over
		l.end()
		return
	} // rule: a term is from before the send
	won.confirm(l.stock.limits)
	l.stock.cands = append(l.stock.cands[:0], won)
	l.happen(applied)
	if first {
		l.known.began = now
		l.stock.term++
		d.pace.begin()
	}
	if mine {
		d.pace.applied(now, l.known.holders(), l.known.rtt, l.flight.scarce, l.flight.change)
	}
}

// drop drops the candidates of lease writes: none of them was applied, unless a removal is
// in flight and the slot is gone.
func (l *life) drop(now int64) {
	doubtful := len(l.stock.cands) > 1
	l.stock.cands = l.stock.cands[:1]
	state, has := l.duties.state, l.known.view.HasOwn
	switch {
	case state == Clearing && !has && l.flight.Kind == Return, state == Ended && !has:
		l.gone(now)
	case state.InFlight(), state == Unsettled:
		l.refuse(now)
	case doubtful && state.Serves():
		l.duties.pace.next = min(l.duties.pace.next, now+firstEvery) // rule: a renewal that was lost is planned anew soon
	}
}

// refuse lets the write in flight be planned anew, soon.
func (l *life) refuse(now int64) {
	l.happen(refused)
	l.duties.pace.refused(now)
}

// lose says that the lease is not in the item any more: it was returned, or another
// replica removed it, or the slot is of a write that this holder has forgotten.
func (l *life) lose(now int64) {
	if l.known.view.HasOwn {
		l.end()
		return
	}
	if l.duties.state.Serves() { // another replica removed it
		l.stock.lapse()
	}
	l.gone(now)
}

// gone says that the replica has no lease and no slot with parts.
func (l *life) gone(now int64) {
	l.happen(removed)
	l.stock.forget()
	d := l.duties
	d.pace = pace{every: firstEvery, next: now, draw: d.pace.draw}
}
