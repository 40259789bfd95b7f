package lane

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
)

// soleShare is the part of a capacity that the centre must have, as one in that many.
// With less a request is not worth a write beside the only lease.
const soleShare = 50

// divider divides a large request between the lease and the item.
type divider struct {
	*item
	*requests

	view      *view
	held      *held
	estimator *estimator
}

// sole reports whether no other replica has a lease: nothing has to be left to it.
func (l *divider) sole() bool {
	for i := range l.view.state.Leases {
		if l.view.state.Leases[i].Replica != l.host.self.replica() {
			return false
		}
	}
	return true
}

// keep has the lease keep its tokens for a request, and asks the centre for the rest. With
// seen it does so, and reports true, only where the centre was seen with enough.
func (l *divider) keep(r *Request, draws []lease.Draw, seen bool) bool {
	h, v := l.held, l.view
	if v.state == nil || l.cedes() {
		return false
	}
	if seen && !l.enough(draws) {
		return false
	}
	whole, rest, ok := h.holder.Keep(v.now, draws)
	if !ok {
		return true
	}
	r.part = &part{whole, slices.Clone(r.Spends), make([]int64, len(r.Spends))}
	for i := range r.Spends {
		sp := &r.Spends[i]
		k := h.of(sp.Limit)
		switch {
		case k < 0:
		case sp.Ask > 0:
			r.part.kept[i] = sp.Ask - rest[k]
			sp.Ask, sp.Need, sp.Take = rest[k], 0, 0
		case sp.Take > 0:
			r.part.kept[i] = sp.Take - rest[k]
			sp.Need, sp.Take = sp.Need-r.part.kept[i], rest[k]
		}
	}
	return true
}

// enough reports whether the centre was seen with enough for the rest of some draws, beside the parts
// that the lease would keep.
func (l *divider) enough(draws []lease.Draw) bool {
	h, v := l.held, l.view
	keeps := slices.ContainsFunc(draws, func(d lease.Draw) bool { return h.holder.Part(v.now, d) > 0 })
	for _, d := range draws {
		i, n := h.index[d.Limit], d.Need
		if keeps && d.Take > 0 {
			n = d.Take - h.holder.Part(v.now, d)
		}
		there := v.quick.Tokens(i, v.now) - l.estimator.underWay(v.state.Limits.At(i).Name)
		if there < n || there < v.state.Limits.Params(i).Capacity/soleShare && v.now > h.asked {
			return false
		}
	}
	return true
}

// cedes reports whether a change of the limits waits for the return of the lease, or another
// replica asks for it. Then nothing is kept: a request that the lease keeps something for would
// wait for the change, and the return for that request.
func (l *divider) cedes() bool {
	h := l.held.holder
	return l.view.state != nil && h.State().Serves() && (l.view.state.Pending > 0 || h.Asked(l.view.now))
}

// settle ends the part that the lease keeps for a request, and reports whether it is spent:
// only where the request is admitted, and the lease is not over.
func (l *divider) settle(r *Request, admitted bool) (spent bool) {
	p := r.part
	r.part = nil
	return l.held.holder != nil && l.held.holder.Settle(l.view.now, p.Part, admitted) && admitted
}

// consume notes the part of a request that the lease kept as consumed.
func (l *divider) consume(r *Request, p *part) {
	for i := range r.Spends {
		if k := l.held.of(r.Spends[i].Limit); k >= 0 {
			l.held.ledger.Add(k, p.kept[i])
		}
	}
}

// release ends the part that the lease keeps for a request. Where it is not spent the request is as it was
// before.
func (l *divider) release(r *Request, spent bool) {
	kept := r.part
	switch {
	case kept == nil:
	case spent: // it was admitted late
		l.settle(r, true)
		l.consume(r, kept)
	default:
		l.settle(r, false)
		r.Spends = kept.spends
	}
}

// answer adds the tokens of the lease to the balance in the answer of the item.
func (l *divider) answer(r *Request) {
	if h := l.held; r.Wait != nil && h.holder != nil && h.holder.State().Serves() && r.Under != nil && r.Under.Hash() == h.hash {
		for i := range r.Spends {
			sp := &r.Spends[i]
			if k := h.of(sp.Limit); sp.Held && k >= 0 {
				rest := h.holder.Report(k, l.view.now, 0, true).Tokens - l.view.quick.Tokens(h.index[k], l.view.now)
				sp.Left.Tokens = min(sp.Left.Tokens+max(rest, 0), r.Under.Params(h.index[k]).Capacity)
			}
		}
	}
	if r.part != nil {
		l.unite(r)
	}
}

// unite ends a request that the centre decided and the lease keeps something for: it is spent
// if the centre gave the rest. Where the lease is over by then the request is denied, and the
// centre gets that back.
func (l *divider) unite(r *Request) {
	kept := r.part
	lost := r.Admitted && !l.settle(r, true) && r.state != owed && r.state != sentOwed // an admission made late stands
	if r.part != nil {                                                                 // rule: what is kept is free again after a denial
		l.settle(r, false)
	}
	if r.Admitted && !lost { // rule: the part that a lease kept counts
		l.consume(r, kept)
	}
	back := r.Undo()
	for i := range r.Spends {
		sp := &r.Spends[i]
		n := kept.kept[i]
		sp.Ask, sp.Need, sp.Take, sp.Found = kept.spends[i].Ask, sp.Need+n, sp.Take+n, sp.Found+n
		switch {
		case lost:
			sp.Exceeded = sp.Held && sp.Need > 0
			sp.Left.Tokens, sp.Back = sp.Left.Tokens+sp.Back, 0
		case r.Admitted && sp.Held:
			sp.Back += n
		}
	}
	if lost {
		r.Admitted = false
		l.owe(r, back) // rule: the centre's part of a large request goes back
	}
}
