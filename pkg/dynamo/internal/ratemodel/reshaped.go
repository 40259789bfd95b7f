package ratemodel

// reshaped checks that a change of the limits or of the shards keeps the tokens.
func (b *ledger) reshaped(q *write, before, after *item) {
	w := b.world
	i := q.item
	switch q.kind {
	case kindChange, kindSplit, kindRetire, kindAbsorb:
		if !before.alone(w.shape.parts) {
			w.fail("%s: parts are leased under the limits of before", q.kind)
		}
	default:
	}
	for l := range w.shape.limits {
		has := w.limitOf(after, i, l).tokens(after, l, q.at)
		if had := b.had(q, l, before, after); q.kind == kindRetire && after[moved(l)] != had || q.kind != kindRetire && has != had {
			w.fail("%s: limit %d has %d units, and should have %d", q.kind, l, has, had)
		}
	}
	w.stats.Reshaped++
	if q.kind == kindChange {
		w.events.change(q.at, after[attrVersion], w.commits)
	}
}

// had is the units that a limit should have after a change of the limits or of the shards.
func (b *ledger) had(q *write, l int, before, after *item) int64 {
	w := b.world
	had := w.limitOf(before, q.item, l).tokens(before, l, q.at)
	switch q.kind {
	case kindChange:
		return b.moves(q, l, before, after)
	case kindSplit:
		return 2*had - after[moved(l)]
	case kindChild:
		return w.heir(q.item)[moved(l)]
	case kindAbsorb:
		other := childOf(q.item, before[attrLevel])
		child := &w.items[other]
		if child[attrRetired] == 0 || child[attrBirth] != before[birthOf(before[attrLevel])] {
			w.fail("a shard is absorbed that is not retired")
		}
		if q.at < child[attrMoveAt] {
			w.fail("%s: both shards refill from %d to %d", q.kind, q.at, child[attrMoveAt])
		}
		return w.limitOf(after, q.item, l).sum(had, absorbed(w, child, other, l, q.at))
	default:
		return had
	}
}

// moves is the units that a limit should have after a change of its numbers, and checks
// the use that it carries.
func (b *ledger) moves(q *write, l int, before, after *item) int64 {
	w := b.world
	old, lim := w.limitOf(before, q.item, l), w.limitOf(after, q.item, l)
	room := lim.room(w.shape.parts)
	was := max(0, b.use[q.item][l]-old.refilled(before, q.at))
	use := -old.convert(-was, lim)
	tokens := min(room, max(room-use, old.convert(old.tokens(before, l, q.at), lim)))
	if got, want := after[carried(l)], tokens+use-room; got != want {
		w.fail("%s: limit %d carries %d units of use, and should carry %d", q.kind, l, got, want)
	}
	return tokens
}
