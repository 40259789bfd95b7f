package ratemodel

// Stats count the work of a run.
type Stats struct {
	Local    int // requests that a lease admitted
	Takes    int // requests that the centre admitted
	Large    int // requests that took from both
	Leases   int // lease writes planned
	Reaps    int // reaps planned
	Reshaped int // changes of limits, splits and merges, step by step
	Doubled  int // takes that were applied twice, or after a refusal
	Late     int // takes that a replica decided before the store did
	Unsure   int // charges and refunds of unknown outcome
	Cascades int // takes from the bucket and its parent
}

// Result is the outcome of a run.
type Result struct {
	Violation string // empty if there is none
	Trace     []string
	Stats     Stats
}
