package ratemodel

// limit is a token bucket: capacity tokens, amount more every period ms. Its unit is
// 1/(period·parts) token, so that a part of the rate refills a whole number of units
// each ms.
type limit struct {
	capacity, amount, period, parts int64
}

// units is that many tokens in units.
func (l limit) units(tokens int64) int64 { return tokens * l.period * l.parts }

// room is that many parts of the capacity, in units.
func (l limit) room(parts int64) int64 { return l.capacity * l.period * parts }

// refilled is R(t): the units that the centre has refilled by t, on the item's line.
func (l limit) refilled(it *item, t int64) int64 {
	return l.amount * (it[attrRate]*t + it[attrLine])
}

// missing is D(t), the deficit of the centre.
func (l limit) missing(it *item, n int, t int64) int64 {
	return max(0, it[deficit(n)]-l.refilled(it, t))
}

// tokens is the units of the centre at t; it is negative in debt.
func (l limit) tokens(it *item, n int, t int64) int64 {
	return l.room(it[attrRoom]) - l.missing(it, n, t)
}

// shard is the limit of one of that many equal shards.
func (l limit) shard(i int, level int64) limit {
	l.capacity = part(l.capacity, i, level)
	l.period *= level
	return l
}

// part is the part of n that a shard has.
func part(n int64, i int, level int64) int64 {
	if level == 1 {
		return n
	}
	half := level / 2
	both := part(n, i%int(half), half)
	if i < int(half) {
		return both - both/2
	}
	return both / 2
}

// convert turns units of l into units of to, rounded against the tokens.
func (l limit) convert(units int64, to limit) int64 {
	n := units * to.period
	if n < 0 {
		return -((-n + l.period - 1) / l.period)
	}
	return n / l.period
}

// moveTo is the tokens and the use of a state, brought to t, under other limits.
func (l limit) moveTo(to limit, it *item, n int, t int64) (tokens, use int64) {
	has, room := l.tokens(it, n, t), to.room(it[attrRoom])
	use = -l.convert(has-l.room(it[attrRoom])-it[carried(n)], to)
	tokens = min(room, max(l.convert(has, to), room-use))
	return tokens, use
}

// sum is the units of a limit that the units of its two halves make.
func (l limit) sum(a, b int64) int64 {
	half := l
	half.period *= 2
	return min(half.convert(a+b, l), l.room(l.parts))
}
