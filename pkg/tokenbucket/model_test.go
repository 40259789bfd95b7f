package tokenbucket_test

import (
	"math/big"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// model is a token bucket by its definition, in exact rationals. The balance is a real number. It
// grows by Amount/Period in every millisecond, up to Capacity, and decreases by each take. Above Capacity it
// grows by top-ups and refunds alone.
// The use decreases at the same rate, is never below 0, and grows by each take. Callers of the
// package see whole millitokens at whole milliseconds.
type model struct {
	params  tokenbucket.Params
	balance *big.Rat // millitokens, at the time at
	use     *big.Rat // the same
	at      int64
}

func newModel(p tokenbucket.Params, now int64) *model {
	return &model{params: p, balance: rat(p.Capacity), use: rat(0), at: now}
}

// useAt returns the use at now, if there is no take in between.
func (m *model) useAt(now int64) *big.Rat {
	use := m.use
	if now > m.at {
		use = new(big.Rat).Sub(use, granted(m.params, m.at, now))
	}
	return most(use, rat(0))
}

// balanceAt returns the balance at now, if there is no take in between. Time before the model's
// latest does not count.
func (m *model) balanceAt(now int64) *big.Rat {
	balance := m.balance
	if m.above() {
		return balance
	}
	if now > m.at {
		balance = new(big.Rat).Add(balance, granted(m.params, m.at, now))
	}
	return least(balance, rat(m.params.Capacity))
}

// above reports whether there is an extra.
func (m *model) above() bool { return m.balance.Cmp(rat(m.params.Capacity)) > 0 }

func (m *model) refill(now int64) {
	m.balance, m.use, m.at = m.balanceAt(now), m.useAt(now), max(m.at, now)
}

// add changes a refilled balance by amount, up to the capacity, and the use by the opposite. Refill
// of carried use while the balance is full counts in whole millitokens: at a take, the rest of the
// use is rounded up.
func (m *model) add(amount *big.Rat) {
	if m.above() {
		m.balance = least(new(big.Rat).Add(m.balance, amount), rat(tokenbucket.MaxAmount))
		m.use = most(new(big.Rat).Sub(rat(m.params.Capacity), m.balance), rat(0))
		return
	}
	if amount.Sign() < 0 && m.balance.Cmp(rat(m.params.Capacity)) == 0 {
		m.use = new(big.Rat).SetInt(ceil(m.use))
	}
	m.balance = least(new(big.Rat).Add(m.balance, amount), rat(m.params.Capacity))
	m.use = most(new(big.Rat).Sub(m.use, amount), rat(0))
}

// passes reports whether a request for amount passes at now. A peek, for 0, needs one whole token.
func (m *model) passes(amount, now int64) bool {
	if amount == 0 {
		amount = tokenbucket.Milli
	}
	return m.balanceAt(now).Cmp(rat(amount)) >= 0
}

func (m *model) tryConsume(amount, now int64) bool {
	ok := m.passes(amount, now)
	m.refill(now)
	if ok {
		m.add(rat(-amount))
	}
	return ok
}

// forceConsume takes amount, or refunds it where it is negative, between the greatest debt and the
// capacity.
func (m *model) forceConsume(amount, now int64) {
	m.refill(now)
	m.add(rat(-amount))
	if debt := rat(-tokenbucket.MaxAmount); m.balance.Cmp(debt) < 0 {
		m.add(debt.Sub(debt, m.balance))
	}
}

// topUp adds amount, and above the capacity whole millitokens. It reports false for a balance above MaxAmount, and
// for one above the capacity beside carried use.
func (m *model) topUp(amount, now int64) bool {
	m.refill(now)
	whole := new(big.Rat).SetInt(floor(m.balance))
	raised := new(big.Rat).Add(whole, rat(amount))
	carried := new(big.Rat).Sub(new(big.Rat).Add(m.balance, m.use), rat(m.params.Capacity)).Sign() > 0 && !m.above()
	above := raised.Cmp(rat(m.params.Capacity)) > 0
	switch {
	case raised.Cmp(rat(tokenbucket.MaxAmount)) > 0 && amount > 0 || above && carried:
		return false
	case above:
		m.balance, m.use = raised, rat(0)
	default:
		m.add(rat(amount))
	}
	return true
}

// reparameterize keeps an extra. Else it keeps the use, and rounds to whole millitokens, which loses less than one. The new
// balance is the capacity minus the use, or the old one if that is more, up to the capacity. Without
// refill before and after it is the capacity minus the use, down to the greatest debt.
func (m *model) reparameterize(to tokenbucket.Params, now int64) {
	m.refill(now)
	if m.above() {
		m.balance = least(new(big.Rat).Add(m.balance, rat(to.Capacity-m.params.Capacity)), rat(tokenbucket.MaxAmount))
		m.params = to
		return
	}
	m.balance, m.use = new(big.Rat).SetInt(floor(m.balance)), new(big.Rat).SetInt(ceil(m.use))
	left, lowest := new(big.Rat).Sub(rat(to.Capacity), m.use), m.balance
	if m.params.Amount == 0 && to.Amount == 0 {
		lowest = rat(-tokenbucket.MaxAmount)
	}
	m.balance = least(most(lowest, left), rat(to.Capacity))
	m.params = to
}

// bucket returns the bucket that corresponds to the model: whole millitokens, and the rest in parts
// of 1/Period.
func (m *model) bucket(t tb) tokenbucket.Bucket {
	t.Helper()
	tokens, use := floor(m.balance), ceil(m.use)
	rest := new(big.Rat).Sub(m.balance, new(big.Rat).SetInt(tokens))
	if tokens.Int64() == m.params.Capacity {
		rest = new(big.Rat).Sub(new(big.Rat).SetInt(use), m.use)
	}
	carried := tokens.Int64() + use.Int64() - m.params.Capacity
	if m.above() {
		carried = m.params.Capacity - tokens.Int64()
	}
	if exact := new(big.Rat).Add(m.balance, m.use); tokens.Int64() < m.params.Capacity && exact.Cmp(rat(m.params.Capacity+carried)) != 0 {
		t.Fatalf("model: balance %v and use %v drift apart", m.balance, m.use)
	}
	rest.Mul(rest, rat(m.params.Period))
	if !rest.IsInt() || !tokens.IsInt64() {
		t.Fatalf("model is off the grid of %+v: %v", m.params, m.balance)
	}
	return tokenbucket.Bucket{Tokens: tokens.Int64(), Remainder: rest.Num().Int64(), Refilled: m.at, Carried: carried}
}

// granted is the refill of an unbounded bucket in (from, to].
func granted(p tokenbucket.Params, from, to int64) *big.Rat {
	elapsed := new(big.Int).Sub(big.NewInt(to), big.NewInt(from))
	rate := big.NewRat(p.Amount, p.Period)
	return rate.Mul(rate, new(big.Rat).SetInt(elapsed))
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

func most(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}

func ceil(r *big.Rat) *big.Int {
	n := floor(new(big.Rat).Neg(r))
	return n.Neg(n)
}

// floor rounds towards minus infinity: half a millitoken of debt is a whole one.
func floor(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom()) // Euclidean; the denominator is positive
}
