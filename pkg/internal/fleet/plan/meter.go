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

// number is a limit's part of a state: FullAt, and the use that is carried there.
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

// give adds millitokens, up to the room. The excess makes up for use that is carried.
func (m *meter) give(n number, millitokens int64) number {
	if millitokens == 0 {
		return n
	}
	next := number{v: new(big.Int).Sub(n.v, m.units(millitokens)), carried: n.carried}
	if m.use(next).Sign() <= 0 {
		return number{v: m.refilled}
	}
	return next
}

// take subtracts millitokens, at any balance. If the limit was full, the part of a
// millitoken that refill made up for is dropped.
func (m *meter) take(n number, millitokens int64) number {
	if millitokens == 0 {
		return n
	}
	x := m.units(millitokens)
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
	if b.Tokens >= m.params.Capacity { // the remainder is of the use that is carried
		v := big.NewInt(-b.Remainder)
		return number{v: v.Add(v, m.refilled), carried: b.Carried}
	}
	v := new(big.Int).Sub(m.room, m.units(b.Tokens))
	v.Sub(v, big.NewInt(b.Remainder))
	return number{v: v.Add(v, m.refilled), carried: b.Carried}
}
