package rls

import (
	"math"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Units of time, as RateLimitResponse.RateLimit.Unit numbers them. Overrides
// number theirs the same, without the week.
const (
	unitSecond = 1
	unitMinute = 2
	unitHour   = 3
	unitDay    = 4
	unitMonth  = 5 // 30 days
	unitYear   = 6 // 365 days
	unitWeek   = 7
)

// unitSeconds returns the length of a unit as Envoy takes it, 0 when unknown.
func unitSeconds(unit int32) int64 {
	const day = 24 * 60 * 60
	switch unit {
	case unitSecond:
		return 1
	case unitMinute:
		return 60
	case unitHour:
		return 60 * 60
	case unitDay:
		return day
	case unitWeek:
		return 7 * day
	case unitMonth:
		return 30 * day
	case unitYear:
		return 365 * day
	default:
		return 0
	}
}

// window is a period as protobuf says it: multiplier × unit. The zero window is
// for a period that is not whole seconds, which no unit can say.
type window struct {
	unit       int32
	multiplier int64
}

// windowOf returns the period in the greatest unit that divides it.
func windowOf(period time.Duration) window {
	seconds := int64(period / time.Second)
	if seconds <= 0 || period%time.Second != 0 {
		return window{}
	}
	for _, unit := range [...]int32{unitYear, unitMonth, unitWeek, unitDay, unitHour, unitMinute} {
		if n := unitSeconds(unit); seconds%n == 0 {
			return window{unit, seconds / n}
		}
	}
	return window{unitSecond, seconds}
}

func (w window) seconds() int64 { return unitSeconds(w.unit) * w.multiplier }

// ceilSeconds returns d in whole seconds, rounded up; 0 for 0 and below.
func ceilSeconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}

// wholeTokens returns a balance in whole tokens, rounded down, never below 0.
func wholeTokens(millitokens int64) int64 { return max(0, millitokens/limiter.Milli) }

// clamp32 cuts a number that is not negative to what protobuf has room for.
func clamp32(n int64) uint32 {
	return uint32(min(n, math.MaxUint32)) // #nosec G115 -- callers give 0 and above
}
