package rls

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// reserved is the reservation of an admitted call.
type reserved struct {
	any     bool
	amounts bool   // of rules that reserve, not of requests in flight alone
	hits    uint64 // at most the hits that any of its descriptors reserved
	id      string // "" = there is none
	result  string // for metrics; "" = nothing was reserved
}

// settlement is the result of one descriptor that settles.
type settlement struct {
	result   string
	done     bool
	adjusted []limiter.Consumption // the use beyond the reserved amounts; below 0 is refunded
}

// The results of a settlement beside the reasons of descriptor and reservation.
const (
	settledNow       = "settled"
	settledBefore    = "repeated"
	settledElsewhere = "wrong_namespace"
	settledOff       = "not_available" // the service makes no reservations
	settledFailed    = "failed"
)

// Results of calls that reserve.
const (
	reservationIssued  = "issued"
	reservationTooLong = "too_long" // its names are too long for an id
	reservationOff     = "not_available"
)

func settledAs(outcome reservation.Outcome) string {
	switch outcome {
	case reservation.Settled:
		return settledNow
	case reservation.Kept:
		return bookingKept
	case reservation.Repeated:
		return settledBefore
	case reservation.Uncertain:
		return bookingUncertain
	case reservation.Lost:
		return bookingLost
	default:
		return settledFailed
	}
}
