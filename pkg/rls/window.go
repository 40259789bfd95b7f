package rls

import "time"

// Units of time, with the numbers of RateLimitResponse.RateLimit.Unit. Overrides have the same
// numbers, without the week.
const (
	unitSecond = 1
	unitMinute = 2
	unitHour   = 3
	unitDay    = 4
	unitMonth  = 5 // 30 days
	unitYear   = 6 // 365 days
	unitWeek   = 7
)

// unitSeconds returns the length of a unit in Envoy, 0 when it is unknown.
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

// window is a period in the form of protobuf: multiplier × unit. The zero window is for a period
// that is not whole seconds, for which there is no unit.
type window struct {
	unit       int32
	multiplier int64
}

// windowOf returns the period in the largest unit that divides it.
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

// appendReset appends the time until a limit is new again, if it is known.
func appendReset(b []byte, seconds int64, known bool) []byte {
	if !known {
		return b
	}
	b, reset := begin(b, statusReset)
	return end(appendUint(b, durationSeconds, uint64(seconds)), reset) // #nosec G115 -- 0 or above
}

// appendRateLimit appends a RateLimit. Numbers beyond the range of protobuf are cut.
func appendRateLimit(b []byte, name string, amount int64, period time.Duration) []byte {
	b, mark := begin(b, statusLimit)
	b = appendUint(b, limitRequests, uint64(clamp32(amount)))
	w := windowOf(period)
	b = appendUint(b, limitUnit, uint64(w.unit)) // #nosec G115 -- 0 to 7
	if name != "" {
		var at int
		b, at = begin(b, limitName)
		b = end(appendToken(b, name), at)
	}
	if w.multiplier > 1 {
		var multiplier int
		b, multiplier = begin(b, limitMultiplier)
		b = end(appendUint(b, 1, uint64(clamp32(w.multiplier))), multiplier)
	}
	return end(b, mark)
}
