package tokenbucket_test

import (
	"math/big"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// model is a token bucket by its definition: a real number that grows by
// Amount/Period in every millisecond, is never above Capacity, and goes down by
// what is taken. It holds one exact rational and rounds nothing; what callers of
// the package see of it is whole millitokens at whole milliseconds.
type model struct {
	params  tokenbucket.Params
	balance *big.Rat // millitokens, at the time at
	at      int64
}

func newModel(p tokenbucket.Params, now int64) *model {
	return &model{params: p, balance: rat(p.Capacity), at: now}
}

// balanceAt is the balance at now when nobody takes in between. Time that the
// model has already seen does not pass again.
func (m *model) balanceAt(now int64) *big.Rat {
	balance := m.balance
	if now > m.at {
		balance = new(big.Rat).Add(balance, granted(m.params, m.at, now))
	}
	return least(balance, rat(m.params.Capacity))
}

func (m *model) refill(now int64) {
	m.balance, m.at = m.balanceAt(now), max(m.at, now)
}

// passes reports whether a request for amount passes at now. A look, which asks
// for 0, wants one whole token.
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
		m.balance = new(big.Rat).Sub(m.balance, rat(amount))
	}
	return ok
}

// forceConsume takes amount, or gives it back where it is negative, between the
// greatest debt and the capacity.
func (m *model) forceConsume(amount, now int64) {
	m.refill(now)
	left := least(new(big.Rat).Sub(m.balance, rat(amount)), rat(m.params.Capacity))
	if debt := rat(-tokenbucket.MaxAmount); left.Cmp(debt) < 0 {
		left = debt
	}
	m.balance = left
}

// reparameterize rounds down to a whole millitoken: what is promised of a change
// of limits is that it adds nothing and loses less than one millitoken.
func (m *model) reparameterize(to tokenbucket.Params, now int64) {
	m.refill(now)
	m.balance = least(new(big.Rat).SetInt(floor(m.balance)), rat(to.Capacity))
	m.params = to
}

// bucket is what the package should hold when the model stands as it does: whole
// millitokens, and the rest in parts of 1/Period.
func (m *model) bucket(t tb) tokenbucket.Bucket {
	t.Helper()
	tokens := floor(m.balance)
	rest := new(big.Rat).Sub(m.balance, new(big.Rat).SetInt(tokens))
	rest.Mul(rest, rat(m.params.Period))
	if !rest.IsInt() || !tokens.IsInt64() {
		t.Fatalf("model is off the grid of %+v: %v", m.params, m.balance)
	}
	return tokenbucket.Bucket{Tokens: tokens.Int64(), Remainder: rest.Num().Int64(), Refilled: m.at}
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

// floor rounds towards minus infinity: half a millitoken of debt is a whole one.
func floor(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom()) // Euclidean; the denominator is positive
}
