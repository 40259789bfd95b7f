package lease

// without decides a request while no lease is served. Where a grant is in flight or due, it
// waits for that: plain takes would refuse the grant. It does not wait for tokens that the
// centre lacked in the last image.
func (d *duties) without(now int64, draws []Draw) Verdict {
	if d.state == Returning || d.state == Clearing {
		return Wait
	}
	if d.state == Unsettled {
		return Centre
	}
	verdict := Wait
	if d.state != Granting {
		if now < d.pace.next || !d.wants(now) { // no grant is planned
			return Centre
		}
		d.pull, verdict = true, Pull
	}
	for _, draw := range draws {
		if v := &d.known.view; v.Exists && v.tokens(draw.Limit, now) < draw.Need {
			return Denied
		}
	}
	return verdict
}

// wait returns in how many milliseconds the lease may cover a request: by its own refill,
// or where that never does, after the next renewal.
func (d *duties) wait(l int, now, need int64) int64 {
	c := &d.stock.cands[0]
	if own := c.params[l]; own.Amount > 0 {
		if ms, ok := c.buckets[l].RetryAfter(own, need+d.stock.kept[l], now); ok {
			return max(ms, 1)
		}
	}
	return max(d.pace.next-now, 1)
}
