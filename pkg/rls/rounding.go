package rls

import (
	"math"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ceilSeconds returns d in whole seconds, rounded up; 0 for 0 and below.
func ceilSeconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}

// wholeTokens returns a balance in whole tokens, rounded down, never below 0.
func wholeTokens(millitokens int64) int64 { return max(0, millitokens/limiter.Milli) }

// clamp32 cuts a number to the range of protobuf. The number must not be negative.
func clamp32(n int64) uint32 {
	return uint32(min(n, math.MaxUint32)) // #nosec G115 -- callers give 0 and above
}
