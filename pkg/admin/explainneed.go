package admin

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// need is the amounts that the takes of a call need of one limit of a bucket, in millitokens.
type need struct {
	take, charge, refund int64
}

// add adds the amount of a take.
func (n *need) add(mode limiter.Mode, amount int64) {
	of := &n.take
	switch mode {
	case limiter.Charge:
		of = &n.charge
	case limiter.Refund:
		of = &n.refund
	case limiter.Consume:
	}
	*of = min(*of+amount, tokenbucket.MaxAmount)
}

// given is how many tokens the charges and refunds of the call add before its takes are decided. It
// is below zero only where charges are booked first; otherwise a charge follows the takes.
func (n *need) given(chargesFirst bool) int64 {
	given := n.refund - n.charge
	if given < 0 && !chargesFirst {
		return 0
	}
	return given
}

// missing returns the balance that a limit must have for the takes of the call, and whether it has
// it. A peek needs one whole token.
func (n *need) missing(s *limiter.LimitStatus, peek, chargesFirst bool) (balance int64, enough bool) {
	want, given, capacity := n.take, n.given(chargesFirst), s.Limit.Params().Capacity
	if peek {
		want = max(want, limiter.Milli)
	}
	if want > capacity { // a refund cannot raise the balance above the capacity
		return want, false
	}
	return want - given, min(s.Available+given, capacity) >= want
}

// debt returns the balance that the charges of the call need to not lead below zero, and whether
// the limit has it.
func (n *need) debt(s *limiter.LimitStatus) (balance int64, enough bool) {
	after := s.Available + n.refund - n.charge
	if floor := s.Limit.DebtFloor(); after < floor {
		after = min(s.Available, floor)
	}
	return n.charge - n.refund, after >= 0
}
