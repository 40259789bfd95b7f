// Package tokenbucket is the exact integer arithmetic of one token bucket.
//
// It knows nothing of entities, stores or clocks: a [Bucket] is a value, time
// is an argument in Unix milliseconds, and every function is pure. Amounts are
// millitokens (one token is 1000 millitokens) in int64; a refill rate is the
// fraction Amount/Period, so a rate such as 100 tokens a minute is exact.
//
// # Refill
//
// Refill is lazy and exact. A bucket keeps the remainder of its own refill, in
// units of 1/Period millitoken, so that for every schedule of calls the tokens
// granted over a span equal those that one call over the whole span grants:
//
//	n   = elapsed·Amount + Remainder        (128 bits)
//	tk' = tk + n div Period
//	rm' = n mod Period
//	tk' ≥ Capacity  →  tk' = Capacity, rm' = 0
//
// A clock that went backwards refills nothing and moves nothing. A balance
// above the capacity, as a lowered limit leaves it, is clamped at once.
//
// # Ranges
//
// Capacity and Amount are at most [MaxCapacity], Period at most [MaxPeriod],
// an amount to consume at most [MaxAmount]; amounts beyond are cut to it. Within
// them nothing overflows, for any two times; debt saturates at -[MaxAmount].
package tokenbucket

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

const (
	// Milli is the number of millitokens in one token.
	Milli = 1000
	// MaxCapacity is the greatest capacity and refill amount: 10^12 tokens, in millitokens.
	MaxCapacity = 1_000_000_000_000 * Milli
	// MinPeriod is the shortest refill period: one second, in milliseconds.
	MinPeriod = 1000
	// MaxPeriod is the longest refill period: 366 days, in milliseconds.
	MaxPeriod = 366 * 24 * 60 * 60 * 1000
	// MaxAmount bounds a single amount and the magnitude of a balance:
	// 10^15 tokens, in millitokens.
	MaxAmount = 1_000_000_000_000_000 * Milli
	// Forever is a duration in milliseconds, about 292 years: what takes longer is
	// cut to it. It is the longest that a time.Duration can hold, and added to a
	// Unix time it does not overflow.
	Forever = math.MaxInt64 / 1_000_000
)

// ErrParams is wrapped by the errors of [Params.Validate].
var ErrParams = errors.New("invalid token bucket parameters")

// Params are the parameters of a bucket: how much it holds and how fast it
// refills. All three must be in range, see [Params.Validate]; the functions of
// this package do not check again.
type Params struct {
	Capacity int64 // most millitokens held, 1 to MaxCapacity
	Amount   int64 // millitokens refilled in each Period, 1 to MaxCapacity
	Period   int64 // milliseconds, MinPeriod to MaxPeriod
}

// Validate reports the first parameter out of range, wrapping [ErrParams].
func (p Params) Validate() error {
	switch {
	case p.Capacity < 1 || p.Capacity > MaxCapacity:
		return fmt.Errorf("%w: capacity %d millitokens is not in 1 to %d", ErrParams, p.Capacity, int64(MaxCapacity))
	case p.Amount < 1 || p.Amount > MaxCapacity:
		return fmt.Errorf("%w: refill amount %d millitokens is not in 1 to %d", ErrParams, p.Amount, int64(MaxCapacity))
	case p.Period < MinPeriod || p.Period > MaxPeriod:
		return fmt.Errorf("%w: refill period %d ms is not in %d to %d", ErrParams, p.Period, MinPeriod, int64(MaxPeriod))
	}
	return nil
}

// Bucket is the state of one bucket at the time of its last refill. The zero
// Bucket is empty since 1970; a new one comes from [Full]. A bucket is refilled
// under the parameters that it was built with; others come by [Bucket.Reparameterize].
type Bucket struct {
	Tokens    int64 // balance in millitokens; below zero is debt
	Remainder int64 // refill not yet worth a millitoken, in 1/Period millitoken, 0 to Period-1
	Refilled  int64 // time of the last refill, Unix milliseconds; never moves back
}

// Full returns the bucket of a limit that nobody has used yet.
func Full(p Params, now int64) Bucket {
	return Bucket{Tokens: p.Capacity, Refilled: now}
}

// Refill returns the bucket as it stands at now. Refilling twice is the same
// as refilling once; a now that is not after Refilled only clamps to the capacity.
func (b Bucket) Refill(p Params, now int64) Bucket {
	if b.Tokens >= p.Capacity {
		return Bucket{Tokens: p.Capacity, Refilled: max(now, b.Refilled)}
	}
	if now <= b.Refilled {
		return b
	}
	elapsed := distance(b.Refilled, now)
	add, rem, ok := mulAddDiv(elapsed, uint64(p.Amount), uint64(b.Remainder), uint64(p.Period)) // #nosec G115 -- none is negative
	if !ok || add >= distance(b.Tokens, p.Capacity) {
		return Bucket{Tokens: p.Capacity, Refilled: now}
	}
	return Bucket{Tokens: b.Tokens + int64(add), Remainder: int64(rem), Refilled: now} // #nosec G115 -- add < Capacity−Tokens, rem < Period
}

// TryConsume takes amount millitokens (0 to [MaxAmount]) if the bucket holds
// them at now, and reports whether it did. A bucket that refuses is refilled
// and otherwise left alone. An amount of 0 or below is a look, which takes
// nothing: see [Need].
func (b Bucket) TryConsume(p Params, amount, now int64) (Bucket, bool) {
	b = b.Refill(p, now)
	if b.Tokens < Need(amount) {
		return b, false
	}
	b.Tokens -= max(amount, 0)
	return b, true
}

// ForceConsume takes amount millitokens whatever the balance, into debt if need
// be; it is how use that has already happened is booked. A negative amount gives
// back and stops at the capacity. Amounts are cut to ±[MaxAmount].
func (b Bucket) ForceConsume(p Params, amount, now int64) Bucket {
	b = b.Refill(p, now)
	b.Tokens -= min(max(amount, -MaxAmount), MaxAmount)
	if b.Tokens >= p.Capacity {
		b.Tokens, b.Remainder = p.Capacity, 0
	}
	if b.Tokens < -MaxAmount {
		b.Tokens, b.Remainder = -MaxAmount, 0
	}
	return b
}

// Need returns the balance that a request for amount must find, in millitokens:
// the amount itself, or one whole token for 0 and below, which is a look.
func Need(amount int64) int64 {
	if amount <= 0 {
		return Milli
	}
	return min(amount, MaxAmount)
}

// RetryAfter returns how many milliseconds after now a request for amount first
// passes, when nobody else takes from the bucket: 0 when it passes at now, and
// ok false when it never will, being more than the capacity. Up to [Forever] it
// is exact:
//
//	ceil((deficit·Period − Remainder) / Amount)
//
// counted from the last refill where that is later than now, as it is after a
// clock that went backwards.
func (b Bucket) RetryAfter(p Params, amount, now int64) (ms int64, ok bool) {
	need := Need(amount)
	if need > p.Capacity {
		return 0, false
	}
	b = b.Refill(p, now)
	if b.Tokens >= need {
		return 0, true
	}
	return b.wait(p, need, now), true
}

// TimeToFull returns how many milliseconds after now the bucket is first full,
// when nobody takes from it: 0 when it is full at now, at most [Forever].
func (b Bucket) TimeToFull(p Params, now int64) int64 {
	b = b.Refill(p, now)
	if b.Tokens >= p.Capacity {
		return 0
	}
	return b.wait(p, p.Capacity, now)
}

// wait is the time from now until a refilled bucket holds need ≤ Capacity,
// which it does not yet.
func (b Bucket) wait(p Params, need, now int64) int64 {
	amount, period, remainder := uint64(p.Amount), uint64(p.Period), uint64(b.Remainder) // #nosec G115 -- none is negative
	hi, lo := bits.Mul64(distance(b.Tokens, need), period)
	lo, borrow := bits.Sub64(lo, remainder, 0)
	hi -= borrow
	if hi >= amount {
		return Forever
	}
	ms, rem := bits.Div64(hi, lo, amount)
	if ms >= Forever { // before rounding up, which could wrap to 0
		return Forever
	}
	if rem > 0 {
		ms++
	}
	if b.Refilled > now {
		late := distance(now, b.Refilled)
		if late >= Forever-ms {
			return Forever
		}
		ms += late
	}
	return int64(ms)
}

// Available returns the balance at now in millitokens; below zero is debt.
func (b Bucket) Available(p Params, now int64) int64 {
	return b.Refill(p, now).Tokens
}

// WouldRefillSatisfy reports whether a request for amount would pass at now.
func (b Bucket) WouldRefillSatisfy(p Params, amount, now int64) bool {
	return b.Refill(p, now).Tokens >= Need(amount)
}

// Status says how a request for an amount stands with a bucket at one time.
type Status struct {
	Available  int64 // balance in millitokens; below zero is debt
	Deficit    int64 // millitokens missing for the request, 0 when it passes
	RetryAfter int64 // milliseconds until it passes, 0 when it does or never will
	Never      bool  // the request is for more than the capacity
	TimeToFull int64 // milliseconds until the bucket is full
}

// Status returns how a request for amount stands at now.
func (b Bucket) Status(p Params, amount, now int64) Status {
	b = b.Refill(p, now)
	retry, ok := b.RetryAfter(p, amount, now)
	return Status{
		Available:  b.Tokens,
		Deficit:    max(0, Need(amount)-b.Tokens),
		RetryAfter: retry,
		Never:      !ok,
		TimeToFull: b.TimeToFull(p, now),
	}
}

// Reparameterize returns the bucket under new parameters: what was due is
// refilled under the old ones, the remainder is dropped (kept, it would be worth
// up to old Period/new Period millitokens) and the balance is cut to the new
// capacity. It never adds tokens beyond the refill that was due.
func (b Bucket) Reparameterize(from, to Params, now int64) Bucket {
	b = b.Refill(from, now)
	return Bucket{Tokens: min(b.Tokens, to.Capacity), Refilled: b.Refilled}
}

// distance returns to − from, which must not be negative, for any two int64.
func distance(from, to int64) uint64 {
	return uint64(to) - uint64(from) // #nosec G115 -- the difference of two's complements is exact
}

// mulAddDiv returns (a·m + r) div d and its remainder in 128-bit arithmetic, and
// false when the quotient does not fit 64 bits. d must be above 0.
func mulAddDiv(a, m, r, d uint64) (quo, rem uint64, ok bool) {
	hi, lo := bits.Mul64(a, m)
	lo, carry := bits.Add64(lo, r, 0)
	hi += carry
	if hi == 0 {
		return lo / d, lo % d, true
	}
	if hi >= d {
		return 0, 0, false
	}
	quo, rem = bits.Div64(hi, lo, d)
	return quo, rem, true
}
