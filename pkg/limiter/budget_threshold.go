package limiter

import (
	"math/bits"
)

// BudgetThresholds returns the parts of a budget, in percent and in order, at which there is an event.
func BudgetThresholds() []int { return []int{80, 95, 100} }

// ReachedPercent returns the highest threshold of an amount of tokens that usage in millitokens has
// reached; 0 = none.
func ReachedPercent(tokens, used int64) (percent int) {
	for _, p := range BudgetThresholds() {
		if reaches(used, tokens*Milli, p) {
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

// CrossedThresholds returns the thresholds above the one that was reported last, up to the one that is
// reached.
func CrossedThresholds(reported, reached int) (percents []int) {
	for _, p := range BudgetThresholds() {
		if p > reported && p <= reached {
			percents = append(percents, p)
		}
	}
	return percents
}
