package ratemodel

import (
	"cmp"
	"slices"
)

// event is an effect that a client saw. Its moment lies between its plan and its
// commit, both as numbers of commits of the store.
type event struct {
	kind    kind
	parent  bool  // of the bucket of the parent
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
	if op.commit == 0 { // of a lease alone
		commit = op.planned
	}
	w.events = append(w.events, event{
		kind: kindTake, parent: op.item == parentItem, at: op.at, limit: l, tokens: tokens, planned: op.planned, commit: commit,
	})
}

func (w *world) refunded(op *operation, l int) {
	if op.tokens[l] > 0 {
		w.events = append(w.events, event{
			kind: kindRefund, parent: op.item == parentItem, at: op.at, limit: l, tokens: op.tokens[l], planned: op.planned, commit: op.commit,
		})
	}
}

// charged books a charge. It is outside of the windows, but it lowers the balance at the end.
func (w *world) charged(i int, at int64, l int, tokens int64) {
	if tokens > 0 {
		w.events = append(w.events, event{
			kind: kindCharge, parent: i == parentItem, at: at, limit: l, tokens: tokens, planned: w.commits, commit: w.commits,
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

// judge holds the events of each bucket against one bucket for each limit, and the tokens
// that are left against those that it has then.
func (w *world) judge() {
	for i := range w.items {
		w.book.check(w, i)
	}
	end := int64(start)
	for _, r := range w.reps {
		end = max(end, r.clock())
	}
	order(w.events)
	for _, parent := range []bool{false, true} {
		for l := range w.shape.limits {
			b := w.bucket(parent, l, end)
			if w.shape.charge && !w.shape.refund {
				w.judgeBucket(b, false)
			}
			if w.shape.refund {
				w.judgeWindows(b)
			} else {
				w.judgeBucket(b, w.shape.charge)
			}
		}
	}
}

// bucket is one limit of a bucket, as its callers saw it.
type bucket struct {
	l      int
	lim    limit // at first
	events []event
	end    int64
	left   int64 // units at the end, in the centre and with the holders
	scale  int64 // of these units make a token
}

func (w *world) bucket(parent bool, l int, end int64) bucket {
	b := bucket{l: l, lim: w.limits[1][l], end: end}
	first, last := 0, parentItem
	if parent {
		b.lim, first, last = w.parents[l], parentItem, maxItems
	}
	for _, e := range w.events {
		if e.kind == kindChange && !parent || e.limit == l && e.parent == parent {
			b.events = append(b.events, e)
		}
	}
	b.scale = maxShards * w.limitOf(&w.items[first], first, l).units(1) / w.items[first][attrLevel]
	for i := first; i < last; i++ {
		b.left += w.left(i, l, end) * (b.scale / w.limitOf(&w.items[i], i, l).units(1))
	}
	return b
}

// left is the units of a limit in an item, and with its holders.
func (w *world) left(i, l int, end int64) (units int64) {
	it := &w.items[i]
	lim := w.limitOf(it, i, l)
	switch {
	case it[attrCreated] == 0:
		return 0
	case it[attrRetired] == 0:
		units = w.usable(lim.tokens(it, l, end))
	case w.heir(i)[birthOf(it[attrLevel])] == it[attrBirth]:
		return w.usable(absorbed(w, it, i, l, end))
	default:
		return 0
	}
	for _, r := range w.reps {
		h := r.holders[i]
		if h != nil && h.serves(r) {
			h.refill(r)
			units += w.usable(h.free(w.removed, l))
		}
	}
	if child := childOf(i, it[attrLevel]); it[attrMove] != 0 && w.items[child][attrEpoch] < it[attrMove] {
		units += it[moved(l)]
	}
	return units
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
func (w *world) judgeBucket(b bucket, charges bool) {
	grain := w.grain()
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
			next := w.limits[e.version][b.l]
			room := next.capacity * grain
			used = room - min(room, max(room-use, lim.capacity*grain-used))
			lim, last = next, e.at
			continue
		}
		if e.kind == kindCharge && !charges {
			continue
		}
		used, use = used+e.tokens*grain, use+e.tokens*grain
		if used > lim.capacity*grain+w.slack(lim) && !charges {
			w.fail("limit %d: %d/%d tokens over at %d", b.l, used-lim.capacity*grain, grain, e.at)
			return
		}
	}
	pass(b.end)
	if has := lim.capacity*grain - used; b.left*grain > (max(0, has)+w.slack(lim))*b.scale {
		w.fail("limit %d: %d/%d tokens are left, and %d/%d should be", b.l, b.left, b.scale, has, grain)
	}
}

// judgeWindows is the form for runs with refunds: takes less refunds of each window
// are at most the capacity and the refill. A refund counts if it may have landed
// between the first plan and the last commit of the takes of the window.
func (w *world) judgeWindows(b bucket) {
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
	grain := w.grain()
	takes = append(takes, event{at: b.end, planned: w.commits, commit: w.commits})
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
			may := b.lim.capacity*grain + w.slack(b.lim) + b.lim.amount*grain/b.lim.period*(takes[j].at-takes[i].at)
			if sum > may && sum-refundedIn(refunds, first, last)*grain > may {
				w.fail("limit %d: from %d to %d %d/%d tokens over", b.l, takes[i].at, takes[j].at, sum-may, grain)
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
