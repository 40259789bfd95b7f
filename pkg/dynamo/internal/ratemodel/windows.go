package ratemodel

// bucket is one limit of a bucket, as its callers saw it.
type bucket struct {
	l      int
	lim    limit // at first
	events []event
	end    int64
	left   int64 // units at the end, in the centre and with the holders
	scale  int64 // of these units make a token
}

// windows holds the events of a bucket against its limits.
type windows struct{ *world }

// grain is how many units of the oracle make a token. All rates are whole in it.
func (o windows) grain() int64 { return 12 * o.shape.slow }

// slack is the refill of the time by which two clocks may differ. A slow clock may plan
// a merge, a return or a change after a take of a fast one. That starts so much early,
// once until the bucket is full again.
func (o windows) slack(lim limit) int64 {
	if !o.shape.clocks {
		return 0
	}
	return lim.amount * o.grain() / lim.period * 2 * o.shape.skew
}

// judgeBucket is the exact form, for runs without refunds: one bucket admits all
// takes, each at its planner's time.
func (o windows) judgeBucket(b bucket, charges bool) {
	grain := o.grain()
	lim, last := b.lim, int64(0)
	var used, use int64 // missing of the capacity; to be made up for by refill
	pass := func(t int64) {
		if due := lim.amount * grain / lim.period * (t - last); due > 0 {
			used, use, last = max(0, used-due), max(0, use-due), t
		}
	}
	for _, e := range b.events {
		pass(e.at)
		if e.kind == kindChange {
			next := o.limits[e.version][b.l]
			room := next.capacity * grain
			used = room - min(room, max(room-use, lim.capacity*grain-used))
			lim, last = next, e.at
			continue
		}
		if e.kind == kindCharge && !charges {
			continue
		}
		used, use = used+e.tokens*grain, use+e.tokens*grain
		if used > lim.capacity*grain+o.slack(lim) && !charges {
			o.fail("limit %d: %d/%d tokens over at %d", b.l, used-lim.capacity*grain, grain, e.at)
			return
		}
	}
	pass(b.end)
	if has := lim.capacity*grain - used; b.left*grain > (max(0, has)+o.slack(lim))*b.scale {
		o.fail("limit %d: %d/%d tokens are left, and %d/%d should be", b.l, b.left, b.scale, has, grain)
	}
}

// judgeWindows is the form for runs with refunds: takes less refunds of each window
// are at most the capacity and the refill. A refund counts if it may have been
// applied between the first plan and the last commit of the takes of the window.
func (o windows) judgeWindows(b bucket) {
	var takes, refunds []event
	for _, e := range b.events {
		switch e.kind {
		case kindTake:
			takes = append(takes, e)
		case kindRefund:
			refunds = append(refunds, e)
		default:
		}
	}
	// The rest is one more take, in units of the oracle and rounded down.
	grain := o.grain()
	takes = append(takes, event{at: b.end, planned: o.commits, commit: o.commits})
	amount := func(i int) int64 {
		if i == len(takes)-1 {
			return b.left * grain / b.scale
		}
		return takes[i].tokens * grain
	}
	for i := range takes {
		first, last, sum := takes[i].planned, 0, int64(0)
		for j := i; j < len(takes); j++ {
			first, last = min(first, takes[j].planned), max(last, takes[j].commit)
			sum += amount(j)
			may := b.lim.capacity*grain + o.slack(b.lim) + b.lim.amount*grain/b.lim.period*(takes[j].at-takes[i].at)
			if sum > may && sum-refundedIn(refunds, first, last)*grain > may {
				o.fail("limit %d: from %d to %d %d/%d tokens over", b.l, takes[i].at, takes[j].at, sum-may, grain)
				return
			}
		}
	}
}

func refundedIn(refunds []event, first, last int) (tokens int64) {
	for _, e := range refunds {
		if e.commit >= first && e.planned <= last {
			tokens += e.tokens
		}
	}
	return tokens
}
