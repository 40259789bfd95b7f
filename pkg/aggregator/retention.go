package aggregator

import (
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// MinRetention is the least time that a snapshot is kept after the end of its window. A stream has the records of a
// window for a day after its end. A snapshot that expires before loses its usage and its positions.
const MinRetention = 24 * time.Hour

// CheckRetention refuses a time to keep a snapshot after the end of its window. It must be 0, for good, or
// MinRetention or more. The error wraps limiter.ErrInvalid.
func CheckRetention(w limiter.UsageWindow, age time.Duration) error {
	if age == 0 || age >= MinRetention {
		return nil
	}
	return fmt.Errorf("%w: usage of the window %v would be kept for %v; it must be 0, for good, or %v or more: records come up to a day late", limiter.ErrInvalid, w, age, MinRetention)
}

// CheckRetentions refuses a function of such times for windows; nil is fine.
func CheckRetentions(windows []limiter.UsageWindow, keep func(limiter.UsageWindow) time.Duration) error {
	if keep == nil {
		return nil
	}
	for _, w := range windows {
		if err := CheckRetention(w, keep(w)); err != nil {
			return err
		}
	}
	return nil
}
