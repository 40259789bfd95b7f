package ratemodel

// pick is the item that a request goes to.
func (r *replica) pick() int {
	if r.world.shape.parent && r.world.chance(3) {
		return parentItem
	}
	return r.sharded()
}

// sharded is one of the shards of the bucket that are known to give tokens.
func (r *replica) sharded() int {
	var live [maxShards]int
	n := 0
	for i := range maxShards {
		if r.seen[i].live() {
			live[n] = i
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return live[r.world.rng.IntN(n)]
}

// beside is an item of the same bucket that gives tokens.
func (r *replica) beside(i int) int {
	if i == parentItem {
		return i
	}
	return r.sharded()
}

// request is a number of tokens for one limit or all.
func (r *replica) request(i int) (tokens [maxLimits]int64) {
	w := r.world
	one := w.rng.IntN(2 * w.shape.limits)
	for l := range tokens {
		if l >= w.shape.limits || one < w.shape.limits && l != one {
			continue
		}
		tokens[l] = 1 + w.upTo(1)
		if w.shape.duel {
			tokens[l] = 1
		}
		if w.chance(4) {
			tokens[l] = 1 + w.upTo(w.limitOf(&r.seen[i], i, l).capacity-1)
		}
	}
	return tokens
}
