package ratemodel

// payer plans charges and refunds anew until they are applied.
type payer struct{ *replica }

// charge takes tokens that may not be there, from the own lease first.
func (r payer) charge() {
	i := r.pick()
	if !r.seen[i].live() {
		return
	}
	tokens := r.request(i)
	if h := r.holders[i]; h != nil && r.serves(h) {
		server(r).charge(h, i, &tokens)
	}
	if tokens != [maxLimits]int64{} {
		r.owed = append(r.owed, caller(r).operation(kindCharge, i, tokens))
	}
	r.pay()
}

// refund gives back tokens of an earlier take.
func (r payer) refund() {
	if last := len(r.given) - 1; last >= 0 {
		r.owed = append(r.owed, caller(r).operation(kindRefund, r.given[last].item, r.given[last].tokens))
		r.given = r.given[:last]
	}
	r.pay()
}

// pay sends the next charge or refund, one at a time. One that was refused stays at its
// item while the epoch is the one that it was pinned to: a copy may be applied there
// yet.
func (r payer) pay() {
	if len(r.owed) == 0 || r.paying != nil {
		return
	}
	op, g := r.owed[0], r.world.removed
	if op.id != 0 && r.ended(op) {
		r.owed = r.owed[1:]
		return
	}
	if op.id == 0 || r.seen[op.item][attrEpoch] != op.epoch || g == PaidHere {
		op.item = r.beside(op.item)
	}
	s := &r.seen[op.item]
	if !s.live() {
		return
	}
	if op.id == 0 {
		op.id = r.world.newID()
	}
	r.owed, r.paying = r.owed[1:], op
	op.answer, op.planned = open, r.world.commits
	op.pinned, op.epoch, op.birth = s[r.paidSlot()], s[attrEpoch], s[attrBirth]
	if op.kind == kindCharge {
		taker(r).chargeFor(op)
	} else {
		taker(r).refundFor(op)
	}
}

// ended reports whether a charge or a refund that was refused needs no new plan: its item
// shows that a copy was applied since, or cannot show it any more.
func (r payer) ended(op *operation) bool {
	s := &r.seen[op.item]
	last := s[r.paidSlot()]
	if s[attrBirth] != op.birth && r.world.removed != PaidThisItem {
		last = unknown
	}
	switch last {
	case op.id:
		op.answer = yes
	case op.pinned:
		return false
	default:
		op.unsure = true
		r.world.stats.Unsure++
	}
	return true
}

// unknown is no id.
const unknown = -1
