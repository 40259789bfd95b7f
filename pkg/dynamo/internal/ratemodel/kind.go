package ratemodel

// kind is the purpose of a write.
type kind = string

// Takes, charges and refunds commute; they may be exact too. All others are exact.
const (
	kindTake   kind = "take"
	kindCharge kind = "charge"
	kindRefund kind = "refund"

	kindCreate kind = "create"
	kindMixed  kind = "mixed"
	kindLease  kind = "lease"
	kindReturn kind = "return"
	kindReap   kind = "reap"
	kindChange kind = "change of limits"
	kindSplit  kind = "split"
	kindChild  kind = "create child"
	kindClear  kind = "clear"
	kindRetire kind = "retire"
	kindAbsorb kind = "absorb"
)
