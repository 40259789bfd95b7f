package ratemodel

import "slices"

// verdict is the answer of the store to a write, or of a replica to its caller.
type verdict int

const (
	open verdict = iota
	yes
	no
)

// operation is one request: a take, a charge or a refund. It counts once.
type operation struct {
	kind    kind
	item    int
	tokens  [maxLimits]int64 // whole tokens that the centre is asked for
	charged [maxLimits]int64 // of an exact take: whole tokens that it charges besides
	held    [maxLimits]int64 // whole tokens that the own lease keeps for it
	holder  *holder
	at      int64 // the planner's clock
	planned int   // commits before the plan
	commit  int   // number of the commit, 0 before
	commits int

	life   int // of the replica that asked
	write  *write
	answer verdict    // of the store
	told   verdict    // to the caller: late, it is before the answer
	other  *operation // of a cascade: both pass, or none
	remedy *operation // the charge or the refund that makes up for a wrong guess
	debt   bool       // it is such a remedy
	id     int64      // of a charge or a refund: the same when it is planned anew
	pinned int64      // and the id that it replaces
	epoch  int64      // and the epoch of the item
	birth  int64      // and the item: one that was made anew has other ids
	unsure bool       // nothing tells any more whether it landed
}

func (r *replica) operation(k kind, i int, tokens [maxLimits]int64) *operation {
	op := &operation{
		kind: k, item: i, tokens: tokens, at: r.clock(), planned: r.world.commits, life: r.life,
	}
	if k == kindTake {
		r.world.ops[r.n] = append(r.world.ops[r.n], op)
	}
	return op
}

// ask sends the write of an operation.
func (r *replica) ask(op *operation, q *write) {
	q.op, q.named, op.write, op.at = op, r.idOf(op.kind), q, q.at
	r.pending = append(r.pending, op)
	if q.kind == kindMixed || q.kind == kindCreate {
		r.sendExact(q)
		return
	}
	r.world.send(r, q)
}

// resend sends a write that has no answer again, unchanged.
func (r *replica) resend() {
	if len(r.pending) > 0 {
		r.world.send(r, r.pending[r.world.rng.IntN(len(r.pending))].write)
	}
}

// answered handles the store's answer to an operation.
func (r *replica) answered(op *operation, landed bool) {
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

// conclude ends a take: the caller is told, unless it was late, and a wrong guess is
// made up for.
func (r *replica) conclude(ops ...*operation) {
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
			op.holder.unhold(r, op)
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

// owe notes a remedy, to be sent until it lands.
func (r *replica) owe(of *operation, k kind) {
	op := r.operation(k, of.item, of.tokens)
	op.debt, of.remedy = true, op
	r.owed = append(r.owed, op)
}

// pay sends the next charge or refund, one at a time. One that was refused stays at its
// item while the epoch is the one that it was pinned to: a copy may land there yet.
func (r *replica) pay() {
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
		r.chargeFor(op)
	} else {
		r.refundFor(op)
	}
}

// ended reports whether a charge or a refund that was refused needs no new plan: its item
// shows that a copy has landed since, or does not tell any more.
func (r *replica) ended(op *operation) bool {
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

// paid ends a charge or a refund, or has it planned anew.
func (r *replica) paid(op *operation) {
	if op != r.paying {
		return
	}
	if r.paying = nil; op.answer == no {
		r.owed = append([]*operation{op}, r.owed...)
	}
}

// late answers a caller before the store does.
func (r *replica) late() {
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

// cascade takes from the bucket and from its parent: from both, or from none. Both
// leases decide alone if they can.
func (r *replica) cascade() {
	w := r.world
	i := r.sharded()
	if !r.seen[i].live() || !r.seen[parentItem].live() {
		return
	}
	w.stats.Cascades++
	tokens, above := r.request(i), r.request(parentItem)
	a, b := r.holders[i], r.holders[parentItem]
	if a != nil && b != nil && a.admits(r, tokens) && b.admits(r, above) {
		r.serve(a, r.operation(kindTake, i, tokens))
		r.serve(b, r.operation(kindTake, parentItem, above))
		return
	}
	child := r.operation(kindTake, i, tokens)
	parent := r.operation(kindTake, parentItem, above)
	child.other, parent.other = parent, child
	for _, op := range []*operation{child, parent} {
		if !r.takeFor(op) {
			r.answered(op, false) // more than the room: no write can admit it
		}
	}
}

// succeed counts a take that the store admitted.
func (r *replica) succeed(op *operation) {
	w := r.world
	if h := op.holder; h != nil {
		h.spendHeld(r, op)
	}
	w.stats.Takes++
	for l := range w.shape.limits {
		if n := op.tokens[l] + op.held[l]; n > 0 {
			w.admit(op, l, n)
		}
	}
	if op.told == yes {
		r.given = append(r.given, op)
	}
	w.tracef("r%d admits %v+%v at %d", r.n, op.tokens, op.held, op.at)
}

// account checks that each caller was told what the store holds: an admission is paid
// once, and a denial not at all, or a remedy is under way.
func (w *world) account() {
	for n, ops := range w.ops {
		for _, op := range ops {
			if r := w.reps[n]; r.life == op.life && op.answer != open && (op.other == nil || op.other.answer != open) {
				w.accountFor(r, op)
			}
		}
	}
}

func (w *world) accountFor(r *replica, op *operation) {
	paid, remedied := op.commits > 0, op.remedy != nil
	copied := paid && op.answer == no // a copy landed after another one was refused
	switch {
	case copied:
		w.stats.Doubled++
	case op.told == yes && !paid && !remedied:
		w.fail("a take of %v was admitted and never paid", op.tokens)
	case op.told == yes && paid && remedied:
		w.fail("a take of %v was paid twice", op.tokens)
	case op.told == no && paid && !remedied:
		w.fail("a take of %v was denied and not given back", op.tokens)
	}
	if remedied && op.remedy.commits == 0 && !op.remedy.unsure && !slices.Contains(r.owed, op.remedy) && !slices.Contains(r.pending, op.remedy) {
		w.fail("a %s of %v is forgotten", op.remedy.kind, op.remedy.tokens)
	}
}
