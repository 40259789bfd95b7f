package budget

import (
	"fmt"
	"math/bits"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Thresholds returns the parts of a budget, in percent and in order, at which there is an event.
func Thresholds() []int { return []int{80, 95, 100} }

// Budget is an amount of tokens of one limit for each window. "" as Namespace, Entity or Resource
// stands for each. Every pair of an entity and a resource has the amount for itself.
type Budget struct {
	Limit    string
	Window   limiter.UsageWindow
	Tokens   int64 // 1 to limiter.MaxTokens
	Selector Selector
}

// Selector says for which buckets a budget is; "" stands for each.
type Selector struct{ Namespace, Entity, Resource string }

// Check refuses, with [limiter.ErrInvalid], what is out of range.
func (b *Budget) Check() error {
	if err := limiter.ValidateLimitName(b.Limit); err != nil {
		return err
	}
	if b.Window > limiter.UsageMonth {
		return fmt.Errorf("%w: there is no window %d", limiter.ErrInvalid, uint8(b.Window))
	}
	if b.Tokens < 1 || b.Tokens > limiter.MaxTokens {
		return fmt.Errorf("%w: the budget of limit %s is %d; it must be 1 to %d tokens", limiter.ErrInvalid, b.Limit, b.Tokens, int64(limiter.MaxTokens))
	}
	return nil
}

// Reached returns the highest threshold that usage in millitokens has reached; 0 = none.
func (b *Budget) Reached(used int64) (percent int) {
	for _, p := range Thresholds() {
		if reaches(used, b.Tokens*limiter.Milli, p) {
			percent = p
		}
	}
	return percent
}

// reaches reports whether used is at least a percentage of an amount. It is exact for all numbers.
func reaches(used, amount int64, percent int) bool {
	if used < 0 {
		return false
	}
	usedHigh, usedLow := bits.Mul64(uint64(used), 100)
	high, low := bits.Mul64(uint64(amount), uint64(percent)) // #nosec G115 -- neither is below 0
	return usedHigh > high || usedHigh == high && usedLow >= low
}

// Crossed returns the thresholds above the one that was told last, up to the one that is reached.
func Crossed(told, reached int) (percents []int) {
	for _, p := range Thresholds() {
		if p > told && p <= reached {
			percents = append(percents, p)
		}
	}
	return percents
}
