// Package tokenbucket is the exact integer arithmetic of one token bucket.
//
// It is independent of entities, stores and clocks. A [Bucket] is a value, time is an argument in
// Unix milliseconds, and every function is pure. Amounts are millitokens (one token is 1000
// millitokens) in int64. A refill rate is the fraction Amount/Period, so a rate such as 100 tokens
// a minute is exact.
//
// # Refill
//
// Refill is lazy and exact. A bucket keeps the remainder of its own refill, in units of 1/Period
// millitoken. So every schedule of calls over a span grants the same tokens as one call over the
// whole span:
//
//	n   = elapsed·Amount + Remainder        (128 bits)
//	tk' = tk + n div Period
//	rm' = n mod Period
//	tk' ≥ Capacity  →  tk' = Capacity, rm' = 0
//
// A clock that went backwards refills nothing and changes nothing. A balance above the capacity is
// clamped at once, but for tokens that [Bucket.TopUp] added.
//
// # Use, and other parameters
//
// The use of a bucket is the number of tokens that refill has yet to make up for: Capacity −
// Tokens. A change of the parameters keeps the use: a capacity raised by d raises the balance by d.
// A lowered capacity cuts the balance, and the tokens that are cut are no use. Then the use can be
// more than the smaller capacity shows. The rest is carried:
//
//	use   = Capacity + Carried − Tokens
//	tk'   = min(Capacity', max(tk, Capacity' − use))
//	cu'   = tk' + use − Capacity'
//
// Once the balance is full, refill makes up for carried use. So a bucket whose use is 0
// is like one that was never used, under any parameters that follow.
//
// Where neither the old parameters nor the new ones refill, the use counts in full: tk' is
// Capacity' − use, in debt too, and cu' is 0. So a lowered quota admits no more than the new
// number in its window, and a lowered number of places counts those that are taken.
//
// # Tokens above the capacity
//
// [Bucket.TopUp] may lift the balance above the capacity. The tokens above it are an extra. Carried
// is then its negative. While there is an extra, refill adds nothing and takes nothing away. So
// takes use the extra first, and it does not refill. A refund adds to the extra: the bucket was full when
// the tokens were taken, or had an extra. A change of the parameters keeps the extra: tk' is Capacity' + extra.
//
// After any changes of the parameters, in any interval no more is taken than a bound: the greatest
// capacity that was in force in it, and the refill. The proof: the tokens taken are the growth of
// the use and the refill. The use is never below 0, nor above H, which is Capacity + Carried. H
// grows only by a raise beyond H, to the new capacity. If H at the end is not above the greatest
// capacity of the interval, that is the bound. If it is, no raise in the interval went beyond H,
// hence none added tokens. Then the tokens taken are the first balance, at most the capacity, and
// refill.
//
// # Ranges
//
// Capacity and Amount are at most [MaxCapacity], Period at most [MaxPeriod],
// an amount to consume at most [MaxAmount]; amounts beyond are cut to it. Within
// them nothing overflows, for any two times; debt saturates at -[MaxAmount], and
// a balance with an extra at [MaxAmount].
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
	// Forever is a duration in milliseconds, about 292 years: longer ones are cut to it. It is the
	// longest that a time.Duration can hold, and added to a Unix time it does not overflow.
	Forever = math.MaxInt64 / 1_000_000
)

// ErrParams is wrapped by the errors of [Params.Validate].
var ErrParams = errors.New("invalid token bucket parameters")

// Params are the parameters of a bucket: its capacity and its refill. All three must be in range,
// see [Params.Validate]; the functions of this package do not check again.
type Params struct {
	Capacity int64 // greatest balance in millitokens, 1 to MaxCapacity
	Amount   int64 // millitokens refilled in each Period, 0 to MaxCapacity; 0 = the bucket never refills
	Period   int64 // milliseconds, MinPeriod to MaxPeriod
}

// Validate reports the first parameter out of range, wrapping [ErrParams].
func (p Params) Validate() error {
	switch {
	case p.Capacity < 1 || p.Capacity > MaxCapacity:
		return fmt.Errorf("%w: capacity %d millitokens is not in 1 to %d", ErrParams, p.Capacity, int64(MaxCapacity))
	case p.Amount < 0 || p.Amount > MaxCapacity:
		return fmt.Errorf("%w: refill amount %d millitokens is not in 0 to %d", ErrParams, p.Amount, int64(MaxCapacity))
	case p.Period < MinPeriod || p.Period > MaxPeriod:
		return fmt.Errorf("%w: refill period %d ms is not in %d to %d", ErrParams, p.Period, MinPeriod, int64(MaxPeriod))
	}
	return nil
}

// Bucket is the state of one bucket at the time of its last refill. The zero Bucket is empty since
// 1970; a new one comes from [Full]. A bucket is refilled under the parameters that it was built
// with; [Bucket.Reparameterize] changes them.
type Bucket struct {
	Tokens    int64 // balance in millitokens; below zero is debt
	Remainder int64 // refill not yet worth a millitoken, in 1/Period millitoken, 0 to Period-1
	Refilled  int64 // time of the last refill, Unix milliseconds; never moves back
	// Carried is use beyond Capacity−Tokens, from a greater capacity, in millitokens, up to MaxCapacity.
	// Below 0 so many millitokens of the balance are above the capacity, see TopUp; -MaxAmount at least.
	Carried int64
}

// Full returns the bucket of an unused limit.
func Full(p Params, now int64) Bucket {
	return Bucket{Tokens: p.Capacity, Refilled: now}
}

// Empty returns the bucket of a limit that may have a use of up to use millitokens, 0 to
// [MaxAmount]. It has no token, and carries the use that the capacity does not show.
func Empty(p Params, use, now int64) Bucket {
	return Bucket{Refilled: now, Carried: min(max(use-p.Capacity, 0), MaxCapacity)}
}

// Refill returns the bucket as of now. Refilling twice is the same as refilling once; a now that is
// not after Refilled only clamps to the capacity.
func (b Bucket) Refill(p Params, now int64) Bucket {
	if b.Carried < 0 {
		if b = b.extra(p); b.Carried < 0 { // rule: refill neither adds to an extra nor takes it away
			b.Remainder, b.Refilled = 0, max(now, b.Refilled)
			return b
		}
	}
	use := p.Capacity + b.Carried - b.Tokens
	if use <= 0 {
		return Full(p, max(now, b.Refilled))
	}
	if now <= b.Refilled {
		return b.clamp(p)
	}
	elapsed := distance(b.Refilled, now)
	add, rem, ok := mulAddDiv(elapsed, uint64(p.Amount), uint64(b.Remainder), uint64(p.Period)) // #nosec G115 -- none is negative
	if !ok || add >= uint64(use) {
		return Full(p, now)
	}
	b.Tokens, b.Remainder, b.Refilled = b.Tokens+int64(add), int64(rem), now // #nosec G115 -- add < use, rem < Period
	return b.clamp(p)
}

// extra has Carried say how much of the balance is above the capacity.
func (b Bucket) extra(p Params) Bucket {
	b.Tokens = min(b.Tokens, MaxAmount)
	b.Carried = min(p.Capacity-b.Tokens, 0)
	return b
}

// Extra returns the millitokens of the balance that are above the capacity, 0 or more.
func (b Bucket) Extra() int64 { return max(-b.Carried, 0) }

// TopUp adds amount millitokens, 0 to [MaxAmount], at any balance, and also above the capacity. It reports false,
// and changes nothing but the refill, if the balance would be above [MaxAmount]. The same goes for one above the capacity
// while the bucket carries use: refill has to make up for that before.
func (b Bucket) TopUp(p Params, amount, now int64) (Bucket, bool) {
	b = b.Refill(p, now)
	above := amount > p.Capacity-b.Tokens
	if amount > MaxAmount-max(b.Tokens, 0) || above && b.Carried > 0 {
		return b, false
	}
	b.Tokens += amount
	if above { // rule: tokens above the capacity are an extra
		b = b.extra(p)
		b.Remainder = 0
	}
	if b.Tokens == p.Capacity && b.Carried == 0 {
		b.Remainder = 0
	}
	return b, true
}

// clamp cuts the balance of a used bucket to the capacity. The excess makes up for
// carried use, and the remainder then belongs to that.
func (b Bucket) clamp(p Params) Bucket {
	if over := b.Tokens - p.Capacity; over > 0 {
		b.Tokens, b.Carried = p.Capacity, b.Carried-over
	}
	return b
}

// Unused reports whether the bucket has no use at now: it is full, and carries none. Then it is
// equal to [Full], under any parameters.
func (b Bucket) Unused(p Params, now int64) bool {
	b = b.Refill(p, now)
	return b.Tokens >= p.Capacity && b.Carried == 0
}

// Use returns the millitokens that refill has yet to make up for at now, 0 or more.
func (b Bucket) Use(p Params, now int64) int64 {
	b = b.Refill(p, now)
	return max(p.Capacity+b.Carried-b.Tokens, 0)
}

// Subtract takes amount millitokens, 0 or more, from a refilled bucket, at any balance. If the
// balance was full the remainder is dropped: it is refill of the carried use, and not of the
// balance.
func (b Bucket) Subtract(p Params, amount int64) Bucket {
	if amount > 0 && b.Tokens >= p.Capacity { // rule: a full balance has no remainder at a take
		b.Remainder = 0
	}
	b.Tokens -= amount
	if b.Carried < 0 { // rule: takes use the extra first
		b = b.extra(p)
	}
	return b
}

// TryConsume takes amount millitokens (0 to [MaxAmount]) if the bucket has them at now, and reports
// whether it did. If not, the bucket is refilled and otherwise unchanged. An amount of 0 or below
// is a peek, which takes nothing: see [Need].
func (b Bucket) TryConsume(p Params, amount, now int64) (Bucket, bool) {
	b = b.Refill(p, now)
	if b.Tokens < Need(amount) {
		return b, false
	}
	return b.Subtract(p, max(amount, 0)), true
}

// ForceConsume takes amount millitokens at any balance, into debt if need be. It charges use that
// has already happened. A negative amount is a refund, which stops at the capacity unless there is an extra. Amounts are cut
// to ±[MaxAmount].
func (b Bucket) ForceConsume(p Params, amount, now int64) Bucket {
	b = b.Refill(p, now).Subtract(p, min(max(amount, -MaxAmount), MaxAmount))
	if b.Carried < 0 { // rule: a refund beside an extra adds to it
		return b
	}
	if p.Capacity+b.Carried <= b.Tokens {
		return Full(p, b.Refilled)
	}
	b = b.clamp(p)
	if b.Tokens < -MaxAmount {
		b.Tokens, b.Remainder = -MaxAmount, 0
	}
	return b
}

// Need returns the balance that a request for amount needs, in millitokens: the amount itself, or
// one whole token for 0 and below, which is a peek.
func Need(amount int64) int64 {
	if amount <= 0 {
		return Milli
	}
	return min(amount, MaxAmount)
}

// RetryAfter returns the milliseconds after now until a request for amount first passes, without
// other takes. It is 0 when the request passes at now. ok is false when it never passes, because it
// is for more than the capacity, and than the balance. Up to [Forever] it is exact:
//
//	ceil((deficit·Period − Remainder) / Amount)
//
// counted from the last refill where that is later than now, as after a clock that went backwards.
func (b Bucket) RetryAfter(p Params, amount, now int64) (ms int64, ok bool) {
	need := Need(amount)
	b = b.Refill(p, now)
	switch {
	case b.Tokens >= need:
		return 0, true
	case need > p.Capacity:
		return 0, false
	}
	return b.wait(p, need, now), true
}

// TimeToFull returns the milliseconds after now until the bucket is first full, without takes: 0
// when it is full at now, at most [Forever].
func (b Bucket) TimeToFull(p Params, now int64) int64 {
	b = b.Refill(p, now)
	if b.Tokens >= p.Capacity {
		return 0
	}
	return b.wait(p, p.Capacity, now)
}

// TimeToUnused returns the milliseconds after now until [Bucket.Unused] first holds, without takes:
// at least TimeToFull, at most [Forever].
func (b Bucket) TimeToUnused(p Params, now int64) int64 {
	b = b.Refill(p, now)
	switch {
	case b.Carried < 0: // an extra does not end by itself
		return Forever
	case b.Tokens >= p.Capacity && b.Carried == 0:
		return 0
	}
	return b.wait(p, p.Capacity+b.Carried, now)
}

// wait returns the time from now until a refilled bucket reaches need, which is above its balance
// and at most Capacity + Carried.
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

// Status is the answer of a bucket to a request for an amount at one time.
type Status struct {
	Available  int64 // balance in millitokens; below zero is debt
	Deficit    int64 // millitokens missing for the request, 0 when it passes
	RetryAfter int64 // milliseconds until it passes, 0 when it passes or never will
	Never      bool  // the request is for more than the capacity
	TimeToFull int64 // milliseconds until the bucket is full
}

// Status returns the status of a request for amount at now.
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

// Reparameterize returns the bucket under new parameters, with its use: see the package comment.
// Refill up to now counts by the old ones. The remainder is dropped: it would be worth up to old
// Period/new Period millitokens. A raised capacity adds the difference, less the use that is
// carried. Use beyond [MaxCapacity] is not carried: no capacity shows it. A lowered capacity leaves
// debt only where neither refills.
func (b Bucket) Reparameterize(from, to Params, now int64) Bucket {
	b = b.Refill(from, now)
	if b.Carried < 0 { // rule: a change of the parameters keeps an extra
		b.Tokens += to.Capacity - from.Capacity
		return b.extra(to)
	}
	use := from.Capacity + b.Carried - b.Tokens // rule: a raise does not add carried use
	least := b.Tokens
	if from.Amount == 0 && to.Amount == 0 {
		least = -MaxAmount // rule: use that no refill makes up for counts in full
	}
	tokens := min(to.Capacity, max(least, to.Capacity-use))
	return Bucket{Tokens: tokens, Refilled: b.Refilled, Carried: min(tokens+use-to.Capacity, MaxCapacity)}
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
