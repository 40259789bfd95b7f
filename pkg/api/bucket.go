package api

import "time"

// Bucket is a bucket in use, and its balances.
type Bucket struct {
	Entity   Name   `json:"entity"`
	Resource Name   `json:"resource"`
	Variant  string `json:"variant,omitempty"` // of a bucket with limits of a rule, a plan or a call; absent = the ordinary one
	Shadow   bool   `json:"shadow,omitempty"`  // of a rule in shadow mode: it denies nobody
	// Source says where its limits are from, such as "plan free", "rule uploads" or "system (file)".
	// Absent = not known; in a list also of the ordinary bucket.
	Source string        `json:"source,omitempty"`
	Shards int           `json:"shards,omitempty"` // of one bucket: pieces that the store keeps it in; absent = one
	Leases int           `json:"leases,omitempty"` // of one bucket: leases that replicas have on it; absent = none
	Limits []BucketLimit `json:"limits"`
}

// OrdinaryVariant names the ordinary bucket in a [BucketChange], where there are others besides.
const OrdinaryVariant = "0000000000000000"

// BucketLimit is one limit of a bucket.
type BucketLimit struct {
	Name  string `json:"name"`
	Limit Limit  `json:"limit"`
	// Available is the balance; below zero is debt. Absent of an unlimited limit.
	Available *Tokens `json:"available,omitempty"`
	// Leased is how many tokens replicas of a fleet have on lease besides, at most. Absent = none.
	Leased Tokens `json:"leased,omitempty"`
	// FullAt is when the limit is full if no request takes from it. Absent = it is full, or the
	// bucket is one of a list.
	FullAt time.Time `json:"full_at,omitzero"`
}

// BucketChange is the body of a change of balances.
type BucketChange struct {
	Entity   Name `json:"entity"`
	Resource Name `json:"resource"`
	// Variant is that of the bucket, [OrdinaryVariant] of the ordinary one. Absent = the only
	// bucket of the entity for the resource, or the only one that has the limit.
	Variant string  `json:"variant,omitempty"`
	Limit   string  `json:"limit,omitempty"`  // absent = every limit of the bucket
	Tokens  *Tokens `json:"tokens,omitempty"` // not of a reset
	Once    string  `json:"once,omitempty"`   // of changes with the same text in a day one is made
}

// Adjusted is the outcome of a change of balances. A repeated one has no bucket where none is in use
// any more.
type Adjusted struct {
	Change[Bucket]

	// Booked says what was booked of each limit that was meant, or in a dry run would be. Absent
	// of a repeated change.
	Booked []Booking `json:"booked,omitempty"`
	// First is the change that a repeated one repeats; absent = not known.
	First *FirstChange `json:"first,omitempty"`
}

// Booking is what a change of balances did to one limit.
type Booking struct {
	Limit  string `json:"limit"`
	Tokens Tokens `json:"tokens"` // that the balance has more; below zero fewer
	// Cut is the rest of the amount that was asked for: the capacity, or the debt floor, has no
	// room for it.
	Cut Tokens `json:"cut,omitempty"`
}

// FirstChange is the change of balances that was made under a text of BucketChange.Once.
type FirstChange struct {
	Verb   string    `json:"verb"`             // reset, set, top-up or take-out
	Tokens Tokens    `json:"tokens,omitempty"` // that were asked for
	Booked []Booking `json:"booked"`
}
