package lease

// plan fills in the lease write that is due, and reports whether one is.
func (d *duties) plan(p *Plan) bool {
	due := p.Now >= d.pace.next
	if p.Now >= d.asked {
		d.asked = 0
	}
	switch {
	case d.returning(p.Now):
		return d.planRecall(p)
	case d.stock.serves && p.local >= d.idleAt() && !d.keeps(): // rule: a lease with kept tokens is not returned
		d.left = p.Now
		return d.planReturn(p)
	case d.stock.serves && (due || d.pull || d.short(p.local)):
		return d.planShare(p, Renew)
	case d.stock.serves && p.local >= d.fallsAt():
		return d.planFall(p)
	case !d.stock.serves && due && d.wants(p.local):
		d.resume(p.Now)
		return d.planShare(p, Grant)
	case !d.stock.serves && due && d.known.view.HasOwn:
		return d.planReturn(p)
	}
	return false
}

// planRecall plans the return of the lease.
func (d *duties) planRecall(p *Plan) bool {
	if p.Now < d.pace.next || d.keeps() {
		return false
	}
	return (d.stock.serves || d.known.view.HasOwn) && d.planReturn(p)
}

// planReturn plans the return of all parts and of the tokens, or of the debt. Without a
// lease there are none: those of the slot count as spent.
func (d *duties) planReturn(p *Plan) bool {
	d.begin(p, Return)
	for l, b := range d.stock.cands[0].buckets {
		p.Draw[l] = -b.Tokens
	}
	return true
}

// begin sets the fields that all plans have.
func (d *duties) begin(p *Plan, kind Kind) {
	p.Kind, p.Draw = kind, make([]int64, len(d.stock.limits))
	if d.known.view.HasOwn {
		p.OldRate, p.OldRoom = d.known.view.Own.Rate, d.known.view.Own.Room
	}
	p.Slot = Slot{Seq: d.seq + 1 + uint16(p.draw*seqSalt), At: encodeAt(p.Now)} // rule: each lease write has a sequence number of its own
}

// seqSalt is how far apart two sequence numbers in a row are at most: at random, so that a
// copy of the machine goes on by other numbers.
const seqSalt = 256

// planShare plans a grant or a renewal.
func (d *duties) planShare(p *Plan, kind Kind) bool {
	d.begin(p, kind)
	d.known.share(p)
	return true
}

// planFall plans a renewal with less rate, unless the share is no less.
func (d *duties) planFall(p *Plan) bool {
	if d.planShare(p, Renew); p.Slot.Rate < p.OldRate {
		return true
	}
	d.firm = d.known.demand.last
	return false
}
