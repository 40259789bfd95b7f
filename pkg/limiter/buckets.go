package limiter

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/money"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Buckets is the part of a store by which operators read and change balances. A store without this
// ability does not implement it. storetest.RunBuckets tests stores against it. Changes of balances
// are outside of the bound on admissions, and are no usage.
type Buckets interface {
	// ListBuckets lists buckets, with their balances at now. A full bucket may be missing: it is
	// the same as none. Long names are in the form in which the store keeps them. The order is the
	// store's own.
	ListBuckets(ctx context.Context, now time.Time, namespace string, f BucketFilter, p Page) (PageOf[BucketState], error)

	// AdjustBucket changes balances of one bucket, and writes an audit event if the store has them.
	// It refuses with [ErrInvalid] each adjustment that [Adjustment.Check] refuses, and a limit
	// that the bucket does not have. Decisions that begin after it see the change; in a fleet those
	// of other replicas, and of leases, within 5 s. After [ErrUncertain] or [ErrUnavailable] an
	// adjustment with a Once may be repeated. It is then made at most once, and perhaps not at all.
	//
	// A top-up that its Excess refuses is not made: it leaves no event, and does not use its Once. An
	// adjustment with the Once of an earlier one is not made either, and returns the earlier one,
	// also if the bucket is gone. A dry run makes every check, and changes nothing. If the result
	// depends on leases, a dry run assumes full leases.
	//
	// After a reset or a set no more is admitted than the new balance and the refill since. An extra
	// of [ExcessKept] is above the capacity: requests use it first, refill leaves it, tokens given back add
	// to it, a change of the limit keeps it, and it ends with the window of a quota.
	//
	// A top-up raises the bound of each interval that contains it by its amount, and a take-out
	// raises none. Tokens that earlier requests return later count as refunds.
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
	Shards int          // number of shards in the store; 0 = one
	Leases int          // number of leases that replicas may have on it
}

// LimitState is a limit of a bucket, and its balance.
type LimitState struct {
	Limit  Limit
	Tokens int64 // millitokens that the store has; below zero is debt; 0 of an unlimited limit
	Leased int64 // most millitokens that replicas may have on lease in addition; 0 = none
	// Carried is use that the capacity does not show, and a raised one would, see [tokenbucket.Bucket]. Below 0 so many
	// millitokens are above the capacity.
	Carried int64
}

// Under has the balance be under another limit of the same name, as the next request would find it.
func (s *LimitState) Under(to Limit, now time.Time) {
	switch {
	case s.Limit.Unlimited:
	case to.Unlimited:
		*s = LimitState{Limit: to}
	default:
		at := now.UnixMilli()
		b := tokenbucket.Bucket{Tokens: s.Tokens, Refilled: at, Carried: s.Carried}.Reparameterize(s.Limit.Params(), to.Params(), at)
		s.Limit, s.Tokens, s.Carried = to, b.Tokens, b.Carried
	}
}

// FullAt returns the time at which the limit is full without takes, including the tokens on lease
// at now. It is zero if the limit is full, and if the time is too far to represent.
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
	Excess Excess // of AdjustTopUp alone
	Once   string // one adjustment with this Once is made in a day
	DryRun bool
	// Follows says that it is a part of an act of which another adjustment has the audit event: it has none.
	Follows bool
	// Limits are those in force, where the caller knows them; nil = those of the bucket. The bucket may be
	// under the older ones of its last request.
	Limits *Limits
}

// Target returns the millitokens to which AdjustSet sets a limit of the bucket. The balance is the wanted one under the
// limits in force then, see [LimitState.Under]. carried is the use that the limit carries on, 0 or more. The errors
// wrap [ErrInvalid].
func (a *Adjustment) Target(l Limit, carried int64) (int64, error) {
	from, to := l.Params(), l.Params()
	if i := a.Limits.Find(l.Name); i >= 0 && !a.Limits.Unlimited(i) {
		to = a.Limits.Params(i)
	}
	if a.Tokens > to.Capacity {
		return 0, fmt.Errorf("%w: limit %s holds at most %s; a top-up can have more", ErrInvalid, a.Bucket.Shown(l.Name), counted(l.Name, to.Capacity))
	}
	if from == to {
		return a.Tokens, nil
	}
	raise := to.Capacity - from.Capacity - carried
	if from.Amount != 0 || to.Amount != 0 { // a lower limit that refills takes no balance away
		raise = max(raise, 0)
	}
	return a.Tokens - raise, nil
}

// Raised returns a bucket of a limit with millitokens of a top-up, also above the capacity. Requests use
// the extra first, and it does not refill, see [tokenbucket.Bucket.TopUp]. The errors wrap [ErrInvalid].
func (a *Adjustment) Raised(l Limit, p tokenbucket.Params, b tokenbucket.Bucket, millitokens, now int64) (tokenbucket.Bucket, error) {
	raised, ok := b.TopUp(p, millitokens, now)
	switch {
	case ok:
		return raised, nil
	case b.Carried > 0:
		return b, fmt.Errorf("%w: limit %s was lowered while it was in use, and cannot have tokens above its capacity before refill has made up for that use", ErrInvalid, a.Bucket.Shown(l.Name))
	default:
		return b, fmt.Errorf("%w: limit %s would have more than %s", ErrInvalid, a.Bucket.Shown(l.Name), counted(l.Name, tokenbucket.MaxAmount))
	}
}

// AdjustKind is a kind of adjustment.
type AdjustKind uint8

// The kinds of adjustments.
const (
	AdjustReset   AdjustKind = iota // full; an extra above the capacity stays
	AdjustSet                       // to so many tokens, 0 to the capacity of every limit; an extra goes
	AdjustTopUp                     // so many tokens more, see Excess
	AdjustTakeOut                   // so many tokens fewer, down to the debt floor
)

// Excess is the treatment of the part of a top-up for which the capacity has no room.
type Excess uint8

// The treatments of the excess of a top-up.
const (
	ExcessRefused Excess = iota // the top-up is not made, of any limit
	ExcessCut                   // it is left out; a top-up without any room is not made
	ExcessKept                  // it is an extra above the capacity, see Raised
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

// OnceAge is how long a store has an Adjustment.Once on record.
const OnceAge = 24 * time.Hour

// MaxOnce is the greatest length of an Adjustment.Once in bytes.
const MaxOnce = 256

// Check refuses, with [ErrInvalid], a kind or an excess that does not exist, an amount out of range,
// and a Once that is too long.
func (a Adjustment) Check() error {
	switch {
	case a.Kind > AdjustTakeOut:
		return fmt.Errorf("%w: there is no adjustment of kind %d", ErrInvalid, a.Kind)
	case a.Excess > ExcessKept || a.Kind != AdjustTopUp && a.Excess != ExcessRefused:
		return fmt.Errorf("%w: there is no excess %d of an adjustment of kind %d", ErrInvalid, a.Excess, a.Kind)
	case a.Kind == AdjustReset && a.Tokens != 0:
		return fmt.Errorf("%w: a reset takes no amount", ErrInvalid)
	case a.Tokens < 0 || a.Tokens > tokenbucket.MaxAmount:
		return fmt.Errorf("%w: the amount is %s; it must be 0 to %s", ErrInvalid, counted(a.Limit, a.Tokens), counted(a.Limit, tokenbucket.MaxAmount))
	case len(a.Once) > MaxOnce:
		return fmt.Errorf("%w: the text of once has %d bytes; it must have at most %d", ErrInvalid, len(a.Once), MaxOnce)
	}
	return nil
}

// Adjusted is the outcome of an adjustment.
type Adjusted struct {
	Found    bool // there is a bucket; else nothing was done, because no bucket is the same as a full one
	Repeated bool // an adjustment with the same Once was made before, and this one was not
	Before   BucketState
	After    BucketState
	// Booked is the changes of balances by limit, in the order of Before. In a dry run they are the
	// expected ones, and of a top-up that is not made those that it would have with [ExcessCut].
	Booked []Booking
	// First is the earlier adjustment that a repeated one repeats; nil if the store does not have
	// it.
	First *FirstAdjustment
}

// Booking is the change of the balance of a limit by an adjustment.
type Booking struct {
	Limit  string `json:"limit"`
	Tokens int64  `json:"tokens"` // millitokens that the balance has more; below zero fewer
}

// Booked returns the bookings of an adjustment that changed a bucket from one state to another.
func (a *Adjustment) Booked(before, after *BucketState) []Booking {
	var all []Booking
	for i, was := range before.Limits {
		if i < len(after.Limits) && !was.Limit.Unlimited && (a.Limit == "" || a.Limit == was.Limit.Name) {
			all = append(all, Booking{was.Limit.Name, after.Limits[i].Tokens - was.Tokens})
		}
	}
	return all
}

// Unfit reports whether an adjustment is a top-up that its Excess refuses, given the bookings that
// it would have.
func (a *Adjustment) Unfit(booked []Booking) bool {
	switch {
	case a.Kind != AdjustTopUp || a.Tokens == 0:
		return false
	case a.Excess == ExcessCut:
		return !slices.ContainsFunc(booked, func(b Booking) bool { return b.Tokens > 0 })
	default:
		return slices.ContainsFunc(booked, func(b Booking) bool { return b.Tokens < a.Tokens })
	}
}

// Cut returns the millitokens of a top-up or a take-out that a booking leaves out: above the
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

// Detail returns the text of the audit event of an adjustment: the limit, the amount, the
// balances that differ before and after it, as far as they are known, and its Once.
func (a *Adjustment) Detail(done *Adjusted) string {
	limit, shown := "every limit", a.Bucket.Shown
	if a.Limit != "" { // of two quarters, where it is in flight
		shown = a.Bucket.withoutQuarter
		limit = "limit " + shown(a.Limit)
	}
	var text strings.Builder
	text.WriteString(limit)
	if a.Kind != AdjustReset {
		text.WriteString(", " + counted(a.Limit, a.Tokens))
	}
	for i, was := range done.Before.Limits {
		if i < len(done.After.Limits) && done.After.Limits[i].Tokens != was.Tokens {
			name := shown(was.Limit.Name)
			fmt.Fprintf(&text, "; %s from %s to %s", name, money.Amounts(name, tokensText(was.Tokens)), money.Amounts(name, tokensText(done.After.Limits[i].Tokens)))
		}
	}
	if a.Once != "" {
		fmt.Fprintf(&text, "; once %q", a.Once)
	}
	return text.String()
}

// counted returns an amount of a limit in millitokens as people read it, with its unit.
func counted(limit string, millitokens int64) string {
	return money.Counted(limit, tokensText(millitokens))
}

// tokensText returns millitokens as tokens with up to three decimals.
func tokensText(millitokens int64) string {
	sign := ""
	if millitokens < 0 {
		sign, millitokens = "-", -millitokens
	}
	text := strconv.FormatInt(millitokens/Milli, 10)
	if rest := millitokens % Milli; rest > 0 {
		text += strings.TrimRight(fmt.Sprintf(".%03d", rest), "0")
	}
	return sign + text
}
