package ratemodel

// oracle judges a run at its end.
type oracle struct{ *model }

// judge holds the events of each bucket against one bucket for each limit, and the tokens
// that are left against those that it has then.
func (o oracle) judge() {
	for i := range o.items {
		o.book.check(i)
	}
	end := int64(start)
	for _, r := range o.reps {
		end = max(end, r.clock())
	}
	order(o.events)
	for _, parent := range []bool{false, true} {
		for l := range o.shape.limits {
			b := o.bucket(parent, l, end)
			if o.shape.charge && !o.shape.refund {
				windows{o.world}.judgeBucket(b, false)
			}
			if o.shape.refund {
				windows{o.world}.judgeWindows(b)
			} else {
				windows{o.world}.judgeBucket(b, o.shape.charge)
			}
		}
	}
}

// bucket is the events of one limit and the units that are left of it.
func (o oracle) bucket(parent bool, l int, end int64) bucket {
	b := bucket{l: l, lim: o.limits[1][l], end: end}
	first, last := 0, parentItem
	if parent {
		b.lim, first, last = o.parents[l], parentItem, maxItems
	}
	for _, e := range o.events {
		if e.kind == kindChange && !parent || e.limit == l && e.parent == parent {
			b.events = append(b.events, e)
		}
	}
	b.scale = maxShards * o.limitOf(&o.items[first], first, l).units(1) / o.items[first][attrLevel]
	for i := first; i < last; i++ {
		b.left += o.left(i, l, end) * (b.scale / o.limitOf(&o.items[i], i, l).units(1))
	}
	return b
}

// left is the units of a limit in an item, and with its holders.
func (o oracle) left(i, l int, end int64) (units int64) {
	it := &o.items[i]
	lim := o.limitOf(it, i, l)
	switch {
	case it[attrCreated] == 0:
		return 0
	case it[attrRetired] == 0:
		units = o.usable(lim.tokens(it, l, end))
	case o.heir(i)[birthOf(it[attrLevel])] == it[attrBirth]:
		return o.usable(absorbed(o.world, it, i, l, end))
	default:
		return 0
	}
	for _, r := range o.reps {
		h := r.holders[i]
		if h != nil && r.serves(h) {
			r.refill(h)
			units += o.usable(h.free(o.removed, l))
		}
	}
	if child := childOf(i, it[attrLevel]); it[attrMove] != 0 && o.items[child][attrEpoch] < it[attrMove] {
		units += it[moved(l)]
	}
	return units
}

// usable is the part of that many units that a take may have. With charges the debt of one
// part counts against the others: a charge is no part of a window, but it must be paid.
func (o oracle) usable(units int64) int64 {
	if o.shape.charge {
		return units
	}
	return max(0, units)
}
