package plan

import (
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// meter is the arithmetic of one limit at one time. Numbers v and amounts in units are
// those of schema.Bucket. A millitoken has params.Period units.
type meter struct {
	now      int64
	refilled schema.Units // R(now)
	room     schema.Units // of the centre
	params   tokenbucket.Params
}

// newMeter returns the arithmetic of a limit at now.
func newMeter(b *schema.Balance, line schema.Line, now int64) meter {
	return meter{now: now, refilled: b.Refilled(line, now), room: roomOf(b, line.Room), params: Params(b, line)}
}

// Params returns the parameters of the part of a limit that a line has. The bucket of
// these has a Remainder in units.
func Params(b *schema.Balance, line schema.Line) tokenbucket.Params {
	p := tokenbucket.Params{Amount: b.Share.Amount * int64(line.Rate), Period: b.Share.Period * schema.Parts}
	p.Capacity = b.Share.Capacity/schema.Parts*int64(line.Room) + b.Share.Capacity%schema.Parts*int64(line.Room)/schema.Parts
	return p
}

// roomOf returns the room of some parts of a limit.
func roomOf(b *schema.Balance, parts int) schema.Units {
	return schema.Product(b.Share.Capacity, b.Share.Period*int64(parts))
}

// units returns millitokens in units.
func (m *meter) units(millitokens int64) schema.Units {
	return schema.Product(millitokens, m.params.Period)
}

// number is a limit's part of a state: FullAt, and the use that is carried there. Below 0, carried is an extra: tokens above
// the capacity. The limit is full then, but for takes that were applied just before the extra was added: see fill.
type number struct {
	v       schema.Units
	carried int64
}

// use returns the use that refill has yet to make up for; below 0 is none.
func (m *meter) use(n number) schema.Units {
	return n.v.Sub(m.refilled).Add(m.units(n.carried))
}

// full reports whether the limit is full: it may still carry use.
func (m *meter) full(n number) bool { return n.v.Cmp(m.refilled) <= 0 }

// tokens returns the balance of the limit, at least -tokenbucket.MaxAmount.
func (m *meter) tokens(n number) schema.Units {
	if m.full(n) {
		return m.room
	}
	t, lowest := m.room.Sub(n.v.Sub(m.refilled)), m.units(-tokenbucket.MaxAmount)
	if t.Cmp(lowest) < 0 {
		return lowest
	}
	return t
}

// bucket returns the limit as pkg/tokenbucket has it, with the parameters of the meter.
func (m *meter) bucket(n number) tokenbucket.Bucket {
	b := tokenbucket.Bucket{Refilled: m.now, Carried: n.carried}
	if m.full(n) {
		if n.carried < 0 {
			b.Tokens = m.params.Capacity + n.extra()
			return b
		}
		u := m.use(n)
		if u.Sign() <= 0 {
			return tokenbucket.Full(m.params, m.now)
		}
		whole, rest := schema.Units{}.Sub(u).DivMod(m.params.Period) // rounds the use up
		b.Tokens, b.Carried, b.Remainder = m.params.Capacity, -whole, rest
		return b
	}
	b.Tokens, b.Remainder = m.tokens(n).DivMod(m.params.Period)
	return b
}

// extra returns the millitokens above the capacity, 0 or more.
func (n number) extra() int64 { return max(-n.carried, 0) }

// raise adds millitokens above the capacity of a full limit with an extra.
func (m *meter) raise(n number, millitokens int64) number {
	return number{v: m.refilled, carried: max(n.carried-millitokens, -tokenbucket.MaxAmount)}
}

// fill moves tokens of an extra below the capacity, as far as the limit lacks them.
func (m *meter) fill(n number) number {
	if n.carried >= 0 || m.full(n) {
		return n
	}
	filled, _ := m.refilled.Sub(n.v).DivMod(m.params.Period) // below 0: by what it lacks, rounded up
	if filled <= n.carried {
		return number{v: n.v.Sub(m.units(n.extra()))}
	}
	return number{v: m.refilled, carried: n.carried - filled}
}

// back returns millitokens of a take, of which some were of an extra.
func (m *meter) back(n number, millitokens, extra int64) number {
	if n = m.give(n, millitokens-extra); extra == 0 {
		return n
	}
	if n.carried <= 0 {
		return m.fill(number{v: n.v, carried: n.carried - extra})
	}
	return m.give(n, extra) // the limit carries use since
}

// give adds millitokens, up to the room. The excess makes up for use that is carried. Beside an extra they add to it.
func (m *meter) give(n number, millitokens int64) number {
	switch {
	case millitokens == 0:
		return n
	case n.carried < 0:
		return m.raise(n, millitokens)
	}
	next := number{v: n.v.Sub(m.units(millitokens)), carried: n.carried}
	if m.use(next).Sign() <= 0 {
		return number{v: m.refilled}
	}
	return next
}

// excess returns how many of the millitokens that give adds have no room, and make up for no carried use.
func (m *meter) excess(n number, millitokens int64) int64 {
	over := m.units(millitokens)
	if lacks := m.use(n); lacks.Sign() > 0 {
		over = over.Sub(lacks)
	}
	whole, _ := over.DivMod(m.params.Period)
	return max(whole, 0)
}

// take subtracts millitokens, at any balance. If the limit was full, the part of a
// millitoken that refill made up for is dropped.
func (m *meter) take(n number, millitokens int64) number {
	if millitokens == 0 {
		return n
	}
	x := m.units(millitokens)
	if extra := n.extra(); extra > 0 {
		if millitokens < extra {
			return number{v: m.refilled, carried: n.carried + millitokens}
		}
		return number{v: m.refilled.Add(m.units(millitokens - extra))}
	}
	if m.full(n) {
		return number{v: m.refilled.Add(x), carried: m.bucket(n).Carried}
	}
	return number{v: n.v.Add(x), carried: n.carried}
}

// charged returns how much a cost takes: no lower than the floor.
func (m *meter) charged(n number, cost, floor int64) int64 {
	tokens := m.bucket(n).Tokens
	return tokens - max(tokens-cost, min(tokens, floor))
}

// number returns the number of a limit with this balance, of the parameters of the meter.
func (m *meter) number(b tokenbucket.Bucket) number {
	if extra := b.Tokens - m.params.Capacity; extra > 0 && b.Carried < 0 {
		return number{v: m.refilled, carried: -extra}
	}
	if b.Tokens >= m.params.Capacity { // the remainder is of the use that is carried
		return number{v: m.refilled.Sub(schema.UnitsOf(b.Remainder)), carried: b.Carried}
	}
	lacks := m.room.Sub(m.units(b.Tokens)).Sub(schema.UnitsOf(b.Remainder))
	return number{v: m.refilled.Add(lacks), carried: b.Carried}
}
