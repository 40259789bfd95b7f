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
}

// Shadow is a rule in shadow mode that matched, and what it would take. It is
// decided on its own, after the call was admitted.
type Shadow struct {
	Rule       *Rule
	Descriptor int // index in Call.Descriptors
	Request    limiter.Request
	Why        string // not "": it would have denied without asking, and takes nothing
}

// Plan is what a call becomes. [Rules.Plan] fills it in and reuses what it
// holds; keep one for each goroutine.
type Plan struct {
	Domain   *Domain // nil when unknown
	Request  limiter.Request
	Outcomes []Outcome // one for each descriptor
	Shadows  []Shadow
	Charges  bool // at least one take is a charge

	// Working memory. What Request and Shadows hold points into consume and parents.
	consume []limiter.Consumption
	parents []string
	matched []*Rule
	values  []captured
	text    []byte
}
