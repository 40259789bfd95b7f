package ratemodel

import (
	"cmp"
	"slices"
)

// event is an effect that a client saw. Its moment lies between its plan and its
// commit, both as numbers of commits of the store.
type event struct {
	kind    kind
	at      int64 // the planner's clock
	limit   int
	tokens  int64
	planned int
	commit  int
	version int64 // of a change: the version of the limits from here on
	era     int   // so many changes of limits were before
}

func (w *world) admit(op *operation, l int, tokens int64) {
	commit := op.commit
	if op.commits == 0 { // of a lease alone
		commit = op.planned
	}
	w.events = append(w.events, event{
		kind: kindTake, at: op.at, limit: l, tokens: tokens, planned: op.planned, commit: commit,
	})
}

func (w *world) refunded(op *operation, l int) {
	if op.tokens[l] > 0 {
		w.events = append(w.events, event{
			kind: kindRefund, at: op.at, limit: l, tokens: op.tokens[l], planned: op.planned, commit: op.commit,
		})
	}
}

// charged books a charge. It is outside of the windows, but it lowers the balance at the end.
func (w *world) charged(at int64, l int, tokens int64) {
	if tokens > 0 {
		w.events = append(w.events, event{
			kind: kindCharge, at: at, limit: l, tokens: tokens, planned: w.commits, commit: w.commits,
		})
	}
}

func (w *world) changedAt(at, version int64) {
	w.events = append(w.events, event{
		kind: kindChange, at: at, commit: w.commits, planned: w.commits, version: version, limit: -1,
	})
}

// order sorts the events by the clocks of their planners, within each version of the
// limits.
func order(events []event) {
	var changes []int
	for _, e := range events {
		if e.kind == kindChange {
			changes = append(changes, e.commit)
		}
	}
	for i := range events {
		for _, c := range changes {
			if events[i].commit >= c {
				events[i].era++
			}
		}
	}
	slices.SortStableFunc(events, func(a, b event) int {
		first := func(e event) int {
			if e.kind == kindChange {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.era, b.era), cmp.Compare(first(a), first(b)),
			cmp.Compare(a.at, b.at), cmp.Compare(a.commit, b.commit))
	})
}

// judge holds the events against one bucket for each limit, and the tokens that are
// left against those that the bucket has then.
func (w *world) judge() {
	for i := range w.items {
		w.book.check(w, i)
	}
	end := int64(start)
	for _, r := range w.reps {
		end = max(end, r.clock())
	}
	order(w.events)
	for l := range w.shape.limits {
		left, scale := w.left(l, end)
		if w.shape.charge && !w.shape.refund {
			w.judgeBucket(l, end, 0, scale, false)
		}
		if w.shape.refund {
			w.judgeWindows(l, end, left, scale)
		} else {
			w.judgeBucket(l, end, left, scale, w.shape.charge)
		}
	}
}

// left is the units of a limit in the centre and with the holders at the end; scale is how
// many of its units make a token.
func (w *world) left(l int, end int64) (units, scale int64) {
	lim := w.limits[w.items[0][attrVersion]][l]
	scale = 2 * lim.units(1)
	for i := range w.items {
		it := &w.items[i]
		if it[attrCreated] == 0 {
			continue
		}
		half := w.limitOf(it, i, l)
		factor := scale / half.units(1)
		switch {
		case i == 1 && it[attrRetired] == 1 && w.items[0][attrLevel] == 2 && w.items[0][attrMove] == 0:
			units += w.usable(absorbed(w, it, l, end))
		case i == 1 && it[attrRetired] == 1:
		default:
			units += factor * w.usable(half.tokens(it, l, end))
		}
		for _, r := range w.reps {
			h := r.holders[i]
			if h != nil && h.serves(r) {
				h.refill(r)
				units += factor * w.usable(h.free(w.removed, l))
			}
		}
	}
	if root := &w.items[0]; root[attrMove] != 0 && w.items[1][attrEpoch] < root[attrMove] {
		units += root[moved(l)]
	}
	return units, scale
}

// usable is the part of so many units that a take may have. With charges the debt of one part
// counts against the others: a charge is no part of a window, but it must be paid.
func (w *world) usable(units int64) int64 {
	if w.shape.charge {
		return units
	}
	return max(0, units)
}

// grain is how many units of the oracle make a token. All rates are whole in it.
func (w *world) grain() int64 { return 12 * w.shape.slow }

// slack is the refill of the time by which two clocks may differ. A merge, a return
// or a change that a slow clock plans after a take of a fast one starts that much early,
// once until the bucket is full again.
func (w *world) slack(lim limit) int64 {
	if !w.shape.clocks {
		return 0
	}
	return lim.amount * w.grain() / lim.period * 2 * w.shape.skew
}

// judgeBucket is the exact form, for runs without refunds: one bucket admits all
// takes, each at its planner's time.
func (w *world) judgeBucket(l int, end, left, scale int64, charges bool) {
	grain := w.grain()
	lim := w.limits[1][l]
	var used int64
	last := int64(0)
	pass := func(t int64) {
		if t > last {
			used = max(0, used-lim.amount*grain/lim.period*(t-last))
			last = t
		}
	}
	for _, e := range w.events {
		if e.kind == kindChange {
			pass(e.at)
			next := w.limits[e.version][l]
			used = max(next.capacity*grain-lim.capacity*grain+used, 0)
			lim, last = next, e.at
			continue
		}
		if e.limit != l || e.kind == kindCharge && !charges {
			continue
		}
		pass(e.at)
		used += e.tokens * grain
		if used > lim.capacity*grain+w.slack(lim) && !charges {
			w.fail("limit %d: %d/%d tokens over at %d", l, used-lim.capacity*grain, grain, e.at)
			return
		}
	}
	pass(end)
	if has := lim.capacity*grain - used; left*grain > (max(0, has)+w.slack(lim))*scale {
		w.fail("limit %d: %d/%d tokens are left, and %d/%d should be", l, left, scale, has, grain)
	}
}

// judgeWindows is the form for runs with refunds: takes less refunds of each window
// are at most the capacity and the refill. A refund counts if it may have landed
// between the first plan and the last commit of the takes of the window.
func (w *world) judgeWindows(l int, end, left, scale int64) {
	var takes, refunds []event
	for _, e := range w.events {
		switch {
		case e.limit != l:
		case e.kind == kindTake:
			takes = append(takes, e)
		case e.kind == kindRefund:
			refunds = append(refunds, e)
		}
	}
	// The rest is one more take, in units of the oracle and rounded down.
	grain := w.grain()
	takes = append(takes, event{at: end, planned: w.commits, commit: w.commits})
	amount := func(i int) int64 {
		if i == len(takes)-1 {
			return left * grain / scale
		}
		return takes[i].tokens * grain
	}
	lim := w.limits[1][l]
	for i := range takes {
		first, last, sum := takes[i].planned, 0, int64(0)
		for j := i; j < len(takes); j++ {
			first, last = min(first, takes[j].planned), max(last, takes[j].commit)
			sum += amount(j)
			may := lim.capacity*grain + w.slack(lim) + lim.amount*grain/lim.period*(takes[j].at-takes[i].at)
			if sum > may && sum-refundedIn(refunds, first, last)*grain > may {
				w.fail("limit %d: from %d to %d %d/%d tokens over", l, takes[i].at, takes[j].at, sum-may, grain)
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
