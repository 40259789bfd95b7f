package lease

import (
	"math"
	"math/bits"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

const (
	// Parts is the number of parts that the rate and the room of a bucket are cut into.
	Parts = 1000
	// Term is how long a lease is served, in milliseconds from before the send of the write
	// that granted or renewed it.
	Term = 5000
	// ReapAfter is how long a slot must be seen unchanged, in milliseconds of the monotonic
	// clock, before another replica frees it.
	ReapAfter = Term + Term/8 // rule: a lease is over before it is freed
	// MaxHolders is the greatest number of slots in an item.
	MaxHolders = 64
)

// forever is a time that does not come.
const forever = math.MaxInt64

// Scale returns the parameters of a share of a bucket with the parameters p: rate parts of
// its rate and room parts of its capacity, 0 to [Parts] each. A share without rate has
// Amount 0 and never refills; one without room has Capacity 0. The functions of
// tokenbucket work with both. The capacity is rounded down to a millitoken.
//
// The rate is exact. The fraction is reduced as far as every share allows it. So the
// period of a share, and with it the unit of a remainder, is the same for each rate. Where
// the amount is a multiple of [Parts] the period is that of the limit. Scale reports false
// where p or a share of it is out of the range of tokenbucket.
func Scale(p tokenbucket.Params, rate, room int) (tokenbucket.Params, bool) {
	if p.Validate() != nil || rate < 0 || rate > Parts || room < 0 || room > Parts {
		return tokenbucket.Params{}, false
	}
	common := gcd(p.Amount, Parts)
	amount, period := p.Amount/common, p.Period*(Parts/common)
	if amount > tokenbucket.MaxCapacity/Parts || period > tokenbucket.MaxPeriod {
		return tokenbucket.Params{}, false
	}
	return tokenbucket.Params{
		Capacity: portion(p.Capacity, room),
		Amount:   amount * int64(rate),
		Period:   period,
	}, true
}

// portion returns a number of parts of n, 0 or more, rounded down.
func portion(n int64, parts int) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(parts)) // #nosec G115 -- neither is negative
	quo, _ := bits.Div64(hi, lo, Parts)            // hi < Parts: parts is at most Parts
	return int64(quo)                              // #nosec G115 -- at most n
}

// partsOf returns how many parts of whole, above 0, cover n, rounded up, at most Parts.
func partsOf(n, whole int64) int {
	if n <= 0 {
		return 0
	}
	if n >= whole {
		return Parts
	}
	hi, lo := bits.Mul64(uint64(n), Parts)        // #nosec G115 -- n is above 0
	quo, rem := bits.Div64(hi, lo, uint64(whole)) // #nosec G115 -- hi < whole, because n < whole
	if rem > 0 {
		quo++
	}
	return int(quo) // #nosec G115 -- at most Parts
}

// millitokens returns a reckoned amount as an integer from 0 to most.
func millitokens(amount float64, most int64) int64 {
	switch {
	case math.IsNaN(amount) || amount <= 0:
		return 0
	case amount >= float64(most):
		return most
	default:
		return int64(amount)
	}
}

func gcd(a, b int64) int64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
