package plan

import (
	"math/big"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// meter is the arithmetic of one limit at one time. Numbers v and amounts in units are
// those of schema.Bucket.
type meter struct {
	now      int64
	unit     *big.Int // units of a millitoken
	refilled *big.Int // R(now)
	room     *big.Int // of the centre, in units
	lowest   *big.Int // the least balance that tokens returns, in units
	params   tokenbucket.Params
}

// newMeter returns the arithmetic of a limit at now.
func newMeter(b *schema.Balance, line schema.Line, now int64) *meter {
	m := &meter{now: now, refilled: b.Refilled(line, now), params: Params(b, line)}
	m.unit = big.NewInt(m.params.Period)
	m.room = roomOf(b, line.Room)
	m.lowest = m.units(-tokenbucket.MaxAmount)
	return m
}

// Params returns the parameters of the part of a limit that a line has. The bucket of
// these has a Remainder in units.
func Params(b *schema.Balance, line schema.Line) tokenbucket.Params {
	p := tokenbucket.Params{Amount: b.Share.Amount * int64(line.Rate), Period: b.Share.Period * schema.Parts}
	p.Capacity = b.Share.Capacity/schema.Parts*int64(line.Room) + b.Share.Capacity%schema.Parts*int64(line.Room)/schema.Parts
	return p
}

// roomOf returns the room of some parts of a limit, in units.
func roomOf(b *schema.Balance, parts int) *big.Int {
	room := big.NewInt(b.Share.Capacity)
	room.Mul(room, big.NewInt(b.Share.Period))
	return room.Mul(room, big.NewInt(int64(parts)))
}

// units returns millitokens in units.
func (m *meter) units(millitokens int64) *big.Int {
	n := big.NewInt(millitokens)
	return n.Mul(n, m.unit)
}

// number is a limit's part of a state: FullAt, and the use that is carried there. Below 0, carried is an extra: tokens above
// the capacity. The limit is full then, but for takes that were applied just before the extra was added: see fill.
type number struct {
	v       *big.Int // never changed
	carried int64
}

// use returns the use that refill has yet to make up for, in units; below 0 is none.
func (m *meter) use(n number) *big.Int {
	u := m.units(n.carried)
	u.Add(u, n.v)
	return u.Sub(u, m.refilled)
}

// full reports whether the limit is full: it may still carry use.
func (m *meter) full(n number) bool { return n.v.Cmp(m.refilled) <= 0 }

// tokens returns the balance of the limit in units, at least m.lowest.
func (m *meter) tokens(n number) *big.Int {
	t := new(big.Int).Sub(n.v, m.refilled)
	if t.Sign() < 0 {
		t.SetInt64(0)
	}
	t.Sub(m.room, t)
	if t.Cmp(m.lowest) < 0 {
		t.Set(m.lowest)
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
		whole, part := new(big.Int).DivMod(u, m.unit, new(big.Int))
		if part.Sign() > 0 {
			whole.Add(whole, big.NewInt(1))
			b.Remainder = m.params.Period - part.Int64()
		}
		b.Tokens, b.Carried = m.params.Capacity, whole.Int64()
		return b
	}
	whole, part := new(big.Int).DivMod(m.tokens(n), m.unit, new(big.Int))
	b.Tokens, b.Remainder = whole.Int64(), part.Int64()
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
	part := new(big.Int)
	lack, _ := new(big.Int).DivMod(new(big.Int).Sub(n.v, m.refilled), m.unit, part)
	if part.Sign() > 0 {
		lack.Add(lack, big.NewInt(1))
	}
	if extra := n.extra(); lack.Cmp(big.NewInt(extra)) >= 0 {
		return number{v: new(big.Int).Sub(n.v, m.units(extra))}
	}
	return number{v: m.refilled, carried: n.carried + lack.Int64()}
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
	next := number{v: new(big.Int).Sub(n.v, m.units(millitokens)), carried: n.carried}
	if m.use(next).Sign() <= 0 {
		return number{v: m.refilled}
	}
	return next
}

// excess returns how many of the millitokens that give adds have no room, and make up for no carried use.
func (m *meter) excess(n number, millitokens int64) int64 {
	if millitokens == 0 {
		return 0
	}
	lacks := m.use(n)
	if lacks.Sign() < 0 {
		lacks.SetInt64(0)
	}
	over := lacks.Sub(m.units(millitokens), lacks)
	if over.Sign() <= 0 {
		return 0
	}
	return over.Div(over, m.unit).Int64()
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
		x = m.units(millitokens - extra)
		return number{v: x.Add(x, m.refilled)}
	}
	if m.full(n) {
		return number{v: x.Add(x, m.refilled), carried: m.bucket(n).Carried}
	}
	return number{v: x.Add(x, n.v), carried: n.carried}
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
		v := big.NewInt(-b.Remainder)
		return number{v: v.Add(v, m.refilled), carried: b.Carried}
	}
	v := new(big.Int).Sub(m.room, m.units(b.Tokens))
	v.Sub(v, big.NewInt(b.Remainder))
	return number{v: v.Add(v, m.refilled), carried: b.Carried}
}
