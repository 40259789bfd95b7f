package api

import "time"

// Orders of a [Top].
const (
	TopDenied  = "denied"  // the most decisions that the limit denied
	TopBusiest = "busiest" // the most decisions that took from the limit, or charged it
	TopShadow  = "shadow"  // the most decisions that the limit would have denied, of a rule in shadow mode or a shadow limit
)

// Top has the limits of entities with the most decisions of the last minute on the answering
// replica, or on all.
type Top struct {
	By      string   `json:"by"`              // denied, busiest or shadow
	Seconds int      `json:"seconds"`         // the length of the time that the numbers cover
	Fleet   bool     `json:"fleet,omitempty"` // of all replicas: the sums of at most 20 rows that each other one has reported
	Items   []TopRow `json:"items"`           // the most decisions first
}

// TopRow is one limit of an entity for a resource.
type TopRow struct {
	Namespace Name   `json:"namespace"`
	Entity    Name   `json:"entity"`
	Resource  Name   `json:"resource"`
	Limit     string `json:"limit"`
	Decisions int64  `json:"decisions"` // a lower bound
	Tokens    Tokens `json:"tokens"`    // tokens taken or charged; for denials, tokens asked for
}

// Unmatched is the result of a descriptor without a rule that is admitted, and the reason of one that is denied.
const Unmatched = "unmatched"

// Decisions has the number of descriptors that the answering replica has decided.
type Decisions struct {
	Since   time.Time        `json:"since"` // start of the process
	Time    time.Time        `json:"time"`  // of the answer; the difference of two answers is a rate
	Results map[string]int64 `json:"results"`
	// Denials has the denied descriptors by reason, such as limit_exhausted, disabled, denied_by_rule,
	// or unmatched, which no rule matches. A reason without a denial is left out.
	Denials map[string]int64 `json:"denials,omitempty"`
}
