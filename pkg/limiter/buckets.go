package limiter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Buckets is the part of a store by which operators read and change balances. A store that
// cannot do so does not implement it. storetest.RunBuckets holds stores against it. Changes of
// balances stand outside of the bound on what is admitted, and are no usage.
type Buckets interface {
	// ListBuckets lists buckets, as they stand at now. A full bucket may be missing: it is the
	// same as none. Long names stand as the store keeps them. The order is the store's own.
	ListBuckets(ctx context.Context, now time.Time, namespace string, f BucketFilter, p Page) (PageOf[BucketState], error)

	// AdjustBucket changes balances of one bucket, and leaves an audit event where the store
	// keeps them. It refuses with [ErrInvalid] each adjustment that
	// [Adjustment.Check] refuses, and a limit that the bucket does not hold. Decisions that begin after it see the change; in a
	// fleet those of other replicas, and of leases, within 5 s. After
	// [ErrUncertain] or [ErrUnavailable] an adjustment with a Once may be repeated, and is made
	// at most once; it may have been given up.
	//
	// A top-up of which nothing fits is not made: it leaves no event, and does not use its Once.
	// An adjustment with a Once of an earlier one is not made either, and tells of the earlier
	// one, also where there is no bucket any more. A dry run makes every check, and changes nothing. It says of an adjustment that
	// depends on leases what would be if they were full.
	//
	// From a reset or a set on no more is admitted than the new balance and the refill since. A
	// top-up raises the bound of each interval that contains it by its amount, and a take-out
	// raises none. Tokens that come back later, of requests before, count as refunds.
	AdjustBucket(ctx context.Context, now time.Time, a Adjustment) (Adjusted, error)
}

// BucketFilter selects buckets. The zero value selects all.
type BucketFilter struct {
	Entity   string // only those of this entity; "" = all
	Resource string // only those for this resource; "" = all
}

// BucketState is a bucket at a time.
type BucketState struct {
	Key    BucketKey
	Limits []LimitState // in order of names
	Shards int          // pieces that the store keeps it in; 0 = one
	Leases int          // leases on it that replicas may have
}

// LimitState is a limit of a bucket, and its balance.
type LimitState struct {
	Limit  Limit
	Tokens int64 // millitokens that the store has; below zero is debt; 0 of an unlimited limit
	Leased int64 // millitokens that replicas may have on lease besides, at most; 0 = none
}

// FullAt returns when the limit is full if no request takes from it, with what replicas have on
// lease at now. It is zero where it is full, and where that takes longer than a time can say.
func (s *LimitState) FullAt(now time.Time) time.Time {
	if s.Limit.Unlimited {
		return time.Time{}
	}
	p, at := s.Limit.Params(), now.UnixMilli()
	held := tokenbucket.Bucket{Tokens: min(s.Tokens+s.Leased, p.Capacity), Refilled: at}
	wait := held.TimeToFull(p, at)
	if wait == 0 || wait >= tokenbucket.Forever {
		return time.Time{}
	}
	return time.UnixMilli(at + wait).UTC()
}

// Adjustment is a change of balances of a bucket.
type Adjustment struct {
	Bucket BucketKey
	Limit  string // one limit of the bucket; "" = all of them
	Kind   AdjustKind
	Tokens int64  // millitokens; not of AdjustReset
	Once   string // of adjustments with the same Once in a day one is made; "" = each is made
	DryRun bool
}

// AdjustKind is a kind of adjustment.
type AdjustKind uint8

// The kinds of adjustments.
const (
	AdjustReset   AdjustKind = iota // full, as if it had never been used
	AdjustSet                       // to so many tokens, 0 to the capacity of every limit
	AdjustTopUp                     // so many tokens more, up to the capacity
	AdjustTakeOut                   // so many tokens fewer, down to the debt floor
)

// The actions of audit events of buckets, by kind of adjustment.
const (
	ActionResetBucket   = "bucket.reset"
	ActionSetBucket     = "bucket.set"
	ActionTopUpBucket   = "bucket.top-up"
	ActionTakeOutBucket = "bucket.take-out"
)

// Action returns the action of audit events of the kind.
func (k AdjustKind) Action() string {
	return [...]string{ActionResetBucket, ActionSetBucket, ActionTopUpBucket, ActionTakeOutBucket}[k]
}

// OnceAge is how long an Adjustment.Once is remembered.
const OnceAge = 24 * time.Hour

// MaxOnce is the greatest length of an Adjustment.Once in bytes.
const MaxOnce = 256

// Check refuses, with [ErrInvalid], a kind that does not exist, an amount out of range, and a
// Once that is too long.
func (a Adjustment) Check() error {
	switch {
	case a.Kind > AdjustTakeOut:
		return fmt.Errorf("%w: there is no adjustment of kind %d", ErrInvalid, a.Kind)
	case a.Kind == AdjustReset && a.Tokens != 0:
		return fmt.Errorf("%w: a reset takes no amount", ErrInvalid)
	case a.Tokens < 0 || a.Tokens > tokenbucket.MaxAmount:
		return fmt.Errorf("%w: the amount is %s tokens; it must be 0 to %d", ErrInvalid, strings.TrimSuffix(tokensText(a.Tokens), ".000"), int64(tokenbucket.MaxAmount/tokenbucket.Milli))
	case len(a.Once) > MaxOnce:
		return fmt.Errorf("%w: the text of once has %d bytes; it must have at most %d", ErrInvalid, len(a.Once), MaxOnce)
	}
	return nil
}

// Adjusted is the outcome of an adjustment.
type Adjusted struct {
	Found    bool // there is a bucket; else nothing was done, because it is as good as full
	Repeated bool // an adjustment with the same Once was made before, and this one was not
	Before   BucketState
	After    BucketState
	// Booked is what was booked, by limit, in the order of Before: of a dry run what would be.
	Booked []Booking
	// First is the adjustment that a repeated one repeats; nil where the store does not know.
	First *FirstAdjustment
}

// Booking is the change of the balance of a limit by an adjustment.
type Booking struct {
	Limit  string `json:"limit"`
	Tokens int64  `json:"tokens"` // millitokens that the balance has more; below zero fewer
}

// Booked returns what an adjustment booked that led from one state of a bucket to another.
func (a *Adjustment) Booked(before, after *BucketState) []Booking {
	var all []Booking
	for i, was := range before.Limits {
		if i < len(after.Limits) && !was.Limit.Unlimited && (a.Limit == "" || a.Limit == was.Limit.Name) {
			all = append(all, Booking{was.Limit.Name, after.Limits[i].Tokens - was.Tokens})
		}
	}
	return all
}

// Full reports whether an adjustment is a top-up of which nothing fits, by what it would book.
func (a *Adjustment) Full(booked []Booking) bool {
	return a.Kind == AdjustTopUp && a.Tokens > 0 && !slices.ContainsFunc(booked, func(b Booking) bool { return b.Tokens > 0 })
}

// Cut returns how many millitokens of a top-up or a take-out a booking leaves out: above the
// capacity, or below the debt floor.
func (a *Adjustment) Cut(b Booking) int64 {
	switch a.Kind {
	case AdjustTopUp:
		return a.Tokens - b.Tokens
	case AdjustTakeOut:
		return a.Tokens + b.Tokens
	case AdjustReset, AdjustSet:
	}
	return 0
}

// Detail returns the text of the audit event of an adjustment: the limit, the amount, and the
// balances that differ before and after it, as far as they are known.
func (a *Adjustment) Detail(done *Adjusted) string {
	limit := "every limit"
	if a.Limit != "" {
		limit = "limit " + a.Limit
	}
	var text strings.Builder
	text.WriteString(limit)
	if a.Kind != AdjustReset {
		text.WriteString(", " + tokensText(a.Tokens) + " tokens")
	}
	for i, was := range done.Before.Limits {
		if i < len(done.After.Limits) && done.After.Limits[i].Tokens != was.Tokens {
			fmt.Fprintf(&text, "; %s from %s to %s", was.Limit.Name, tokensText(was.Tokens), tokensText(done.After.Limits[i].Tokens))
		}
	}
	return text.String()
}

// tokensText returns millitokens as tokens with three decimals.
func tokensText(millitokens int64) string {
	sign := ""
	if millitokens < 0 {
		sign, millitokens = "-", -millitokens
	}
	return fmt.Sprintf("%s%d.%03d", sign, millitokens/Milli, millitokens%Milli)
}
