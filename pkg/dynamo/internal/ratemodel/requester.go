package ratemodel

// requester asks the own lease first.
type requester struct{ *replica }

// burst asks the own lease for much at once.
func (r requester) burst() {
	g := r.world.shape.greedy
	for range 1 + 2*g*g {
		r.local()
	}
}

// local admits a request from the lease, or asks the centre for the rest.
func (r requester) local() {
	w := r.world
	i := r.pick()
	h := r.holders[i]
	if h == nil || !r.serves(h) {
		return
	}
	op := caller(r).operation(kindTake, i, r.request(i))
	if server(r).admits(h, op.tokens) {
		server(r).serve(h, op)
		return
	}
	if !w.shape.large {
		return
	}
	for l, n := range op.tokens {
		op.held[l] = min(n, h.tokens(w.removed, l))
		op.tokens[l] -= op.held[l]
	}
	if op.held != [maxLimits]int64{} {
		r.large(h, op)
	}
}

// large keeps the tokens of the lease and takes the rest from the centre.
func (r requester) large(h *holder, op *operation) {
	op.holder = h
	if !taker(r).takeFor(op) {
		return
	}
	r.world.stats.Large++
	server(r).hold(h, op)
}

// cascade takes from the bucket and from its parent: from both, or from none. Both
// leases decide alone if they can.
func (r requester) cascade() {
	w := r.world
	i := r.sharded()
	if !r.seen[i].live() || !r.seen[parentItem].live() {
		return
	}
	w.stats.Cascades++
	tokens, above := r.request(i), r.request(parentItem)
	calls, own := caller(r), server(r)
	a, b := r.holders[i], r.holders[parentItem]
	if a != nil && b != nil && own.admits(a, tokens) && own.admits(b, above) {
		own.serve(a, calls.operation(kindTake, i, tokens))
		own.serve(b, calls.operation(kindTake, parentItem, above))
		return
	}
	child := calls.operation(kindTake, i, tokens)
	parent := calls.operation(kindTake, parentItem, above)
	child.other, parent.other = parent, child
	for _, op := range []*operation{child, parent} {
		if !taker(r).takeFor(op) {
			calls.answered(op, false) // more than the room: no write can admit it
		}
	}
}
