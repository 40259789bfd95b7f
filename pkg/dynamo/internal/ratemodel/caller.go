package ratemodel

import "slices"

// caller asks the store for operations, and answers their callers.
type caller struct{ *replica }

// operation starts a request of this replica.
func (r caller) operation(k kind, i int, tokens [maxLimits]int64) *operation {
	op := &operation{
		kind: k, item: i, tokens: tokens, at: r.clock(), planned: r.world.commits, life: r.life,
	}
	if k == kindTake {
		r.world.ops[r.n] = append(r.world.ops[r.n], op)
	}
	return op
}

// ask sends the write of an operation.
func (r caller) ask(op *operation, q *write) {
	q.op, q.named, op.write, op.at = op, r.idOf(op.kind), q, q.at
	r.pending = append(r.pending, op)
	if q.kind == kindMixed || q.kind == kindCreate {
		writer(r).sendExact(q)
		return
	}
	r.send(q)
}

// resend sends a write that has no answer again, unchanged.
func (r caller) resend() {
	if len(r.pending) > 0 {
		r.send(r.pending[r.world.rng.IntN(len(r.pending))].write)
	}
}

// receive handles a reply. Only the last write of an operation answers it.
func (r caller) receive(m *message) {
	q := m.write
	if q.next != nil {
		r.confirm(q.next, m.applied)
	}
	r.learn(q.item, &m.image)
	if q.op != nil && q.op.write == q {
		r.answered(q.op, m.applied || m.image[r.idOf(q.op.kind)] == q.id)
	}
}

// confirm starts the term at the reply, which is wrong.
func (r caller) confirm(c *candidate, applied bool) {
	if applied && r.world.removed == TermFromSend {
		c.endMono = r.mono() + r.world.shape.term
		c.endWall = r.wallNow() + r.world.shape.term
	}
}

// answered handles the store's answer to an operation.
func (r caller) answered(op *operation, landed bool) {
	if op.answer != open {
		return
	}
	r.pending = slices.DeleteFunc(r.pending, func(o *operation) bool { return o == op })
	op.answer = no
	if landed {
		op.answer = yes
	}
	switch {
	case op.kind != kindTake:
		r.paid(op)
	case op.other != nil && op.other.answer == open:
	case op.other != nil:
		r.conclude(op, op.other)
	default:
		r.conclude(op)
	}
}

// conclude ends a take: the caller gets the answer, unless it was late, and a wrong
// guess is made up for.
func (r caller) conclude(ops ...*operation) {
	all := yes
	for _, op := range ops {
		if op.answer == no {
			all = no
		}
	}
	for _, op := range ops {
		late := op.told != open
		if !late {
			op.told = all
		}
		switch {
		case op.answer == yes:
			r.succeed(op)
		case op.holder != nil:
			server(r).unhold(op.holder, op)
		}
		g := r.world.removed
		switch {
		case op.told == yes && (op.answer == no || g == LateOnce && late):
			if g != LateBooked {
				r.owe(op, kindCharge)
			}
		case op.told == no && op.answer == yes:
			if late && g != LateBack || !late && g != CascadeBack {
				r.owe(op, kindRefund)
			}
		}
	}
}

// succeed counts a take that the store admitted.
func (r caller) succeed(op *operation) {
	w := r.world
	if h := op.holder; h != nil {
		server(r).spendHeld(h, op)
	}
	w.stats.Takes++
	for l := range w.shape.limits {
		if n := op.tokens[l] + op.held[l]; n > 0 {
			w.events.take(op, l, n)
		}
	}
	if op.told == yes {
		r.given = append(r.given, op)
	}
	w.tracef("r%d admits %v+%v at %d", r.n, op.tokens, op.held, op.at)
}

// owe notes a remedy, to be sent until it is applied.
func (r caller) owe(of *operation, k kind) {
	op := r.operation(k, of.item, of.tokens)
	op.debt, of.remedy = true, op
	r.owed = append(r.owed, op)
}

// paid ends a charge or a refund, or has it planned anew.
func (r caller) paid(op *operation) {
	if op != r.paying {
		return
	}
	r.paying = nil
	if op.answer == no {
		r.owed = append([]*operation{op}, r.owed...)
	}
}

// late answers a caller before the store does.
func (r caller) late() {
	w := r.world
	for _, op := range r.pending {
		if op.kind != kindTake || op.told != open || op.holder != nil || op.charged != [maxLimits]int64{} || !w.chance(2) {
			continue
		}
		op.told = yes
		if w.shape.refund && w.chance(2) {
			op.told = no
		}
		if op.other != nil {
			op.other.told = op.told
		}
		w.stats.Late++
		w.tracef("r%d is late with %d: told %d", r.n, op.write.id, op.told)
		return
	}
}
