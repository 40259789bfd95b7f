package descriptor

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Entry is one key and value of a descriptor; any bytes.
type Entry struct{ Key, Value string }

// Call is what a gateway asks in one go.
type Call struct {
	Domain      string
	Hits        uint64 // for descriptors that bring no number; 0 counts as 1
	Descriptors []Descriptor
	Estimates   Estimator // for what is reserved without a number; nil = nothing is known

	// Asked is of the rules that plan the call, for [OverdrawAuto]; nil = the process
	// counts as young. Now is the time of the call, by which it remembers.
	Asked *AskedRules
	Now   time.Time
	// NoGuess has [OverdrawAuto] take every amount and charge none: the caller may not charge.
	NoGuess bool
}

// Estimator knows what was used before.
type Estimator interface {
	// Estimate returns how many millitokens of a limit an entity's requests for a
	// resource mostly used, and false when too little is known.
	Estimate(namespace, entity, resource, limit string) (millitokens int64, known bool)
}

// Descriptor is a list of entries, and how much it is about.
type Descriptor struct {
	Entries []Entry
	Hits    uint64 // when HitsSet; an explicit 0 is a look
	HitsSet bool
	Refund  bool   // give back instead of taking
	Limit   *Limit // replaces the limit that the rule consumes
}

// Limit is a limit that comes with a descriptor.
type Limit struct {
	Requests uint64        // tokens, and capacity; 0 admits nothing
	Period   time.Duration // above 0
}

// Kind says what became of a descriptor.
type Kind uint8

// The kinds of outcomes.
const (
	Unmatched Kind = iota // no rule, or an unknown domain
	Unlimited             // a rule admits it and takes nothing
	Takes                 // it takes from buckets, see Outcome.First
	Settles               // it settles a reservation
	Denied                // it can never be admitted; Outcome.Why says so
)

// Outcome is what became of one descriptor of a call.
type Outcome struct {
	Kind  Kind
	Rule  *Rule        // nil when Unmatched
	First int          // index of its first take in Plan.Request.Takes
	Count int          // number of its takes there
	Mode  limiter.Mode // of its takes, also when there are none
	Deny  bool         // Unmatched, and the domain denies what no rule matches
	Why   string       // Denied, or of Takes: what was used cannot be booked, or not all of it
	// Settled reports of Takes with Mode Charge that the same call gives back to the
	// same descriptor: together they settle what was reserved.
	Settled bool
	// Answers reports of Takes with Mode Charge that the descriptor is over its limit
	// when the balance is below zero after the charge.
	Answers bool
	// Quota reports that the descriptor, when it is over its limit, denies the call only
	// if all others of the call with Quota are over too.
	Quota bool
}

// Reserve is a take that is a reservation.
type Reserve struct {
	Take int    // index in Plan.Request.Takes
	Hits uint64 // what it stands for: never more than its amounts
}

// Unlisted is a take whose resource is not among those that its rule lists by name, so
// that another stands in its place.
type Unlisted struct {
	Take  int    // index in Plan.Request.Takes of the first take that has it
	Value string // that the descriptor brings
}

// Settlement is a descriptor that settles a reservation. Those of one ID settle
// it together.
type Settlement struct {
	Descriptor int    // index in Call.Descriptors
	ID         string // as the descriptor brings it
	Used       []limiter.Consumption
	Why        string // not "": it cannot be settled, see NoNumber and IsRefund
}

// Why a descriptor settles nothing, whatever its ID.
const (
	NoNumber = "no_number" // an absent number is not 0: taken for 1 it would give nearly all back
	IsRefund = "is_refund" // a settlement says what was used
)

// Shadow is a rule in shadow mode that matched, and what it would take. It is
// decided on its own, after the call was admitted.
type Shadow struct {
	Rule       *Rule
	Descriptor int // index in Call.Descriptors
	Request    limiter.Request
	Why        string // not "": it would have denied without asking, and takes nothing
	Answers    bool   // it would have denied if a balance is below zero after its charge
}

// Plan is what a call becomes. [Rules.Plan] fills it in and reuses what it
// holds; keep one for each goroutine.
type Plan struct {
	Domain   *Domain // nil when unknown
	Request  limiter.Request
	Outcomes []Outcome // one for each descriptor
	Shadows  []Shadow
	Charges  bool // at least one take is a charge
	Answers  bool // at least one outcome has Answers
	Quota    bool // at least one outcome has Quota

	Reserves    []Reserve    // in the order of takes
	Settlements []Settlement // in the order of descriptors
	Unlisted    []Unlisted   // in the order of takes

	// Working memory. What Request and Shadows hold points into consume and parents.
	consume  []limiter.Consumption
	parents  []string
	matched  []*Rule
	reserved []Reserve // of the rule at hand
	values   []captured
	text     []byte
}
