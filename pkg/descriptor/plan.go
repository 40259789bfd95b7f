package descriptor

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Call is one request of a gateway.
type Call struct {
	Domain      string
	Hits        uint64 // for descriptors without a number; 0 counts as 1
	Descriptors []Descriptor
	Estimates   Estimator // for reservations without a number; nil = no estimates

	// Asked is for [OverdrawAuto], and belongs to the rules that plan the call; nil = no limit was asked. Now
	// is the time of the call for it.
	Asked *AskedRules
	Now   time.Time
	// NoGuess makes [OverdrawAuto] take every amount and charge none, for a caller that may not
	// charge.
	NoGuess bool
	// AllQuota makes each descriptor for an envoyproxy/ratelimit file one of quota_mode.
	AllQuota bool
	// Use is the effect on limits of a limitador file. Other domains do not look at it.
	Use Use
}

// Estimator estimates use from earlier use.
type Estimator interface {
	// Estimate returns how many millitokens of a limit most requests of an entity for a resource
	// used. It returns false when too few requests are known.
	Estimate(namespace, entity, resource, limit string) (millitokens int64, known bool)
}

// Kind is the effect of a descriptor.
type Kind uint8

// The kinds of outcomes.
const (
	Unmatched Kind = iota // no rule, or an unknown domain
	Unlimited             // a rule admits it and takes nothing
	Takes                 // it takes from buckets, see Outcome.First
	Settles               // it settles a reservation
	Denied                // it can never be admitted; Outcome.Why says so
	Exempt                // a rule exempts the call: it is admitted, and takes nothing
	Beside                // the first descriptor of the call has the outcome for it too: a domain of a limitador file
)

// Outcome is the plan for one descriptor of a call.
type Outcome struct {
	Kind  Kind
	Rule  *Rule        // nil when Unmatched
	First int          // index of its first take in Plan.Request.Takes
	Count int          // number of its takes there
	Mode  limiter.Mode // of its takes, also when there are none
	Deny  bool         // Unmatched, and the domain denies such descriptors
	Why   string       // of Denied the reason; of Takes why a charge or refund, or a part of it, cannot be booked
	// Settled reports, for Takes with Mode Charge, that the same call refunds the same descriptor.
	// Together they settle a reservation.
	Settled bool
	// Answers reports, for Takes with Mode Charge, that the descriptor is over its limit when the
	// balance is below zero after the charge.
	Answers bool
	// Peek reports, for Takes of an envoyproxy/ratelimit file, that the descriptor takes nothing: it is over its
	// limit when the balance is below zero.
	Peek bool
	// Silent reports, for Unlimited, that the status has no number: an envoyproxy/ratelimit file has no limit there,
	// or another limit of the call replaces it.
	Silent bool
	// Quota reports that the descriptor is of quota_mode. When it is over its limit, it denies the
	// call only if all others of the call with Quota are over too.
	Quota bool
}

// Reserve is a take that is a reservation.
type Reserve struct {
	Take int    // index in Plan.Request.Takes
	Hits uint64 // the hits that it stands for: never more than its amounts
}

// Unlisted is a take whose resource is not in the list of its rule, so that it has another
// resource.
type Unlisted struct {
	Take  int    // index in Plan.Request.Takes of the first take that has it
	Value string // of the descriptor
}

// Settlement is a descriptor that settles a reservation. All settlements of one ID settle it
// together.
type Settlement struct {
	Descriptor int    // index in Call.Descriptors
	ID         string // as the descriptor has it
	Used       []limiter.Consumption
	Why        string // not "": why it cannot be settled, NoNumber or IsRefund
}

// DeniedByRule is the Outcome.Why of a rule that denies.
const DeniedByRule = "denied_by_rule"

// The reasons why a descriptor settles nothing, even with a valid ID.
const (
	NoNumber = "no_number" // an absent number is not 0: as 1 it would refund nearly all
	IsRefund = "is_refund" // a settlement says how much was used
)

// Shadow is a shadow rule that matched, with its takes. It is decided on its own, after the call
// was admitted.
type Shadow struct {
	Rule       *Rule
	Descriptor int // index in Call.Descriptors
	Request    limiter.Request
	Why        string // not "": the reason for which it would deny without asking the store; it takes nothing
	Peek       bool   // as Outcome.Peek
	Reserves   []Reserve
	Answers    bool // it would deny if a balance is below zero after its charge
}

// Plan is the plan for a call. [Rules.Plan] fills it in and reuses its memory; keep one for each
// goroutine.
type Plan struct {
	Domain   *Domain // nil when unknown
	Request  limiter.Request
	Outcomes []Outcome // one for each descriptor
	Shadows  []Shadow
	Charges  bool // at least one take is a charge
	Answers  bool // at least one outcome has Answers or Peek
	Quota    bool // at least one outcome has Quota

	Reserves    []Reserve    // in the order of takes
	Settlements []Settlement // in the order of descriptors
	Unlisted    []Unlisted   // in the order of takes
	Applied     []*Rule      // the limit of each take, in a domain of a limitador file

	// Working memory. Request and Shadows point into consume and parents.
	consume  []limiter.Consumption
	parents  []string
	matched  []*Rule
	reserved []Reserve // of the current rule
	values   []captured
	text     []byte
}
