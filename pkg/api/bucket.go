package api

import (
	"strconv"
	"time"
)

// Bucket is a bucket in use, and its balances.
type Bucket struct {
	Entity   Name   `json:"entity"`
	Resource Name   `json:"resource"`
	Variant  string `json:"variant,omitempty"` // of a bucket with limits of a rule, a plan or a call; absent = the ordinary one
	Shadow   bool   `json:"shadow,omitempty"`  // of a rule in shadow mode, which never denies
	// Window is that of the quotas of the bucket; absent = the bucket is for all time.
	Window *BucketWindow `json:"window,omitempty"`
	// Source is the origin of its own limits, such as "plan free" or "rule uploads". Absent = not
	// known, or the ordinary bucket, whose limits have one each.
	Source string        `json:"source,omitempty"`
	Shards int           `json:"shards,omitempty"` // of one bucket: the number of its shards; absent = one
	Leases int           `json:"leases,omitempty"` // of one bucket: the number of leases on it; absent = none
	Limits []BucketLimit `json:"limits"`
}

// BucketWindow is one window of a quota, from Start up to End.
type BucketWindow struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// QuotaUntil is the Rate of a limit of a window, where its quota is not known: "100 until 2026-12-01T00:00:00Z".
func QuotaUntil(tokens int64, end time.Time) string {
	return strconv.FormatInt(tokens, 10) + " until " + end.Format(time.RFC3339)
}

// OrdinaryVariant names the ordinary bucket in a [BucketChange], for an entity and resource with
// several buckets.
const OrdinaryVariant = "0000000000000000"

// BucketLimit is one limit of a bucket.
type BucketLimit struct {
	Name  string `json:"name"`
	Limit Limit  `json:"limit"`
	// InFlight says that the limit is of requests in flight: its tokens are places, which requests free as they end.
	InFlight bool `json:"in_flight,omitempty"`
	// Available is the balance; below zero is debt, and above the capacity an extra of a top-up. Absent for an unlimited limit.
	Available *Tokens `json:"available,omitempty"`
	// Source is the level that it is from, such as "system (file)". Absent = not known, that of the bucket,
	// or the bucket is one of a list.
	Source string `json:"source,omitempty"`
	// Leased is the most tokens that replicas of a fleet have on lease beside the balance. Absent =
	// none.
	Leased Tokens `json:"leased,omitempty"`
	// FullAt is when the limit is full if no request takes from it. Absent = it is full, or the
	// bucket is one of a list.
	FullAt time.Time `json:"full_at,omitzero"`
}

// BucketChange is the body of a change of balances.
type BucketChange struct {
	Entity   Name `json:"entity"`
	Resource Name `json:"resource"`
	// Variant is that of the bucket; [OrdinaryVariant] for the ordinary one. Absent = the only
	// bucket of the entity for the resource, or the only one that has the limit.
	Variant string  `json:"variant,omitempty"`
	Limit   string  `json:"limit,omitempty"`  // absent = every limit of the bucket
	Tokens  *Tokens `json:"tokens,omitempty"` // absent for a reset
	Excess  Excess  `json:"excess,omitempty"` // of a top-up; absent = a top-up that does not fit as a whole is refused
	Once    string  `json:"once,omitempty"`   // of changes with the same text within a day only the first is made
}

// Excess is the treatment of the part of a top-up for which the capacity has no room.
type Excess string

// The treatments of the excess. With UpToCapacity what fits is booked; a top-up of which nothing fits is refused. With Beyond
// all is booked, also above the capacity: requests use that extra first, and it does not refill.
const (
	UpToCapacity Excess = "up-to-capacity"
	Beyond       Excess = "beyond"
)

// Adjusted is the outcome of a change of balances. A repeated change has no bucket if that is no
// longer in use.
type Adjusted struct {
	Change[Bucket]

	// Booked are the changes of each limit, made or, in a dry run, not made. Absent for a repeated
	// change.
	Booked []Booking `json:"booked,omitempty"`
	// First is the change that a repeated one repeats; absent = not known.
	First *FirstChange `json:"first,omitempty"`
}

// Booking is the change of the balance of one limit.
type Booking struct {
	Limit  string `json:"limit"`
	Tokens Tokens `json:"tokens"` // added to the balance; below zero, taken from it
	// Cut is the rest of the requested amount, for which the capacity or the debt floor has no
	// room.
	Cut Tokens `json:"cut,omitempty"`
}

// FirstChange is the change of balances that was made first under a text of BucketChange.Once.
type FirstChange struct {
	Verb   string    `json:"verb"`             // reset, set, top-up or take-out
	Tokens Tokens    `json:"tokens,omitempty"` // requested tokens
	Booked []Booking `json:"booked"`
}
