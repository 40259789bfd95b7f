package limiter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// BucketKey identifies a bucket. Two keys are the same bucket only if all fields are equal.
type BucketKey struct {
	Namespace string
	Entity    string // any bytes
	Resource  string // any bytes
	Variant   uint64 // 0 for the ordinary bucket; else for own limits, a label, or a shadow
	Window    Window // of quotas, whose limits never refill; zero for a bucket for all time
}

// VariantText is the variant and the window as text: 16 hexadecimal digits, and for a window begin, end and
// calendar. It has no '#'.
func (k BucketKey) VariantText() string {
	if k.Window == (Window{}) {
		return fmt.Sprintf("%016x", k.Variant)
	}
	return fmt.Sprintf("%016x@%d_%d_%016x", k.Variant, k.Window.Start, k.Window.End, k.Window.Calendar)
}

// ParseVariant sets the variant and the window of a text of [BucketKey.VariantText].
func (k *BucketKey) ParseVariant(text string) error {
	id, window, windowed := strings.Cut(text, "@")
	parts := strings.Split(window, "_")
	bad := fmt.Errorf("%w: the variant of a bucket is 16 hexadecimal digits, and those of a window behind @, not %.100q", ErrInvalid, text)
	if len(id) != 16 || windowed && len(parts) != 3 {
		return bad
	}
	var errs [4]error
	k.Variant, errs[0] = strconv.ParseUint(id, 16, 64)
	if k.Window = (Window{}); windowed {
		k.Window.Start, errs[1] = strconv.ParseInt(parts[0], 10, 64)
		k.Window.End, errs[2] = strconv.ParseInt(parts[1], 10, 64)
		k.Window.Calendar, errs[3] = strconv.ParseUint(parts[2], 16, 64)
	}
	if errors.Join(errs[:]...) != nil {
		return bad
	}
	return nil
}

// Over reports whether the window has ended at a time. That of a bucket for all time never does.
func (w Window) Over(now time.Time) bool { return w != (Window{}) && now.Unix() >= w.End }

// Begun reports whether the window has begun at a time. That of a bucket for all time has.
func (w Window) Begun(now time.Time) bool { return w == (Window{}) || now.Unix() >= w.Start }

// Has reports whether the window has a time. That of a bucket for all time has each.
func (w Window) Has(now time.Time) bool { return w.Begun(now) && !w.Over(now) }

// How long a store keeps the bucket of a window after its end, at least. It is longer than clocks differ.
// For quotas it is longer than a reservation may be settled, too.
const (
	keepQuota    = 25 * time.Hour
	keepInFlight = 10 * time.Minute
)

// KeptUntil returns the time until which a store keeps the bucket of the window, in Unix seconds. It is 0 for
// a bucket for all time.
func (w Window) KeptUntil() int64 {
	switch {
	case w == (Window{}):
		return 0
	case w.InFlight():
		return w.End + int64(keepInFlight/time.Second)
	default:
		return w.End + int64(keepQuota/time.Second)
	}
}

// Forgettable reports whether a store may forget the bucket of a window at a time in Unix milliseconds.
func (w Window) Forgettable(now int64) bool {
	return w != (Window{}) && now >= w.KeptUntil()*1000
}

// ShadowVariants is the least variant of shadow buckets, on which limits are tried. No other bucket
// has such a variant, so the key alone identifies a shadow.
const ShadowVariants uint64 = 0xffffff << 40

// Shadow reports whether limits are tried on the bucket, see [Take.Shadow]. Its consumption was
// taken from other buckets too, and so is no usage.
func (k BucketKey) Shadow() bool { return k.Variant >= ShadowVariants }

// Uncounted reports whether usage leaves a limit of the bucket out: all of a shadow, requests in flight, which
// use nothing up, and quotas that are budgets, whose usage is that of another limit.
func (k BucketKey) Uncounted(limit string) bool {
	return k.Shadow() || k.Window.InFlight() || k.budgetOf(limit) != ""
}

// budgetOf returns the name of the limit that a quota of the bucket is a budget of, or "".
func (k BucketKey) budgetOf(quota string) string {
	if k.Window == (Window{}) {
		return ""
	}
	return Calendar{Unit: k.Window.unit()}.BudgetOf(quota)
}

// Op is one bucket's part of a decision.
//
// # Limits of the bucket
//
// A bucket has limits, and their version: (Generation, Limits.Hash()), ordered by generation, then
// by hash. A missing bucket is created full, with the op's limits. When the hashes differ and the
// op's version is greater, the op's limits are applied before anything else. Each limit of the
// bucket is refilled with its old parameters, and its use is carried over to the new ones
// (tokenbucket.Bucket.Reparameterize). A capacity raised by d raises the balance by d, a lowered
// one cuts it. Without refill a capacity lowered by d lowers the balance by d.
//
// A limit that is gone stays dormant with its old parameters while it has use, so that its use is
// still there if it returns. A limit without use is the same as one that the bucket never had, and
// starts full. When the op's version is smaller, the bucket decides by the newer limits that it
// has. When the hashes are equal the generation is raised to the op's.
//
// Refill makes up for use that a full balance carries. When a store takes from such a balance, it
// may drop a made-up part of a millitoken.
//
// A bucket may forget dormant limits beyond MaxDormant, first those with the least time until they
// are without use. Until all forgotten limits would be without use, a limit that the bucket does
// not have starts empty. It has no token. It carries the greatest use that one of them had when it
// was forgotten, if that is more than its capacity. So no change of limits returns used tokens,
// after any number of changes. A debt that is forgotten is remitted: charges are outside of the
// bound.
//
// # Order within an op
//
// The steps of each spend:
//
//  1. The balance is refilled to now.
//  2. Refund and Charge are netted. A net refund is added, up to the capacity.
//  3. A Take above 0 is admitted if the balance is at least Take, and a peek (Look) if it is at
//     least one whole token. A spend with neither is always admitted, also in debt.
//  4. A net charge is subtracted, down to the limit's debt floor and no further. The remainder of
//     the refill stays. A balance below the floor stays.
//
// # Strings
//
// Strings of an op may share memory with a whole message: a store clones those that it keeps.
type Op struct {
	Bucket     BucketKey
	Limits     *Limits // not empty
	Generation uint64
	Spends     []Spend // not empty; every Limit once

	// Shard is the shard of the op in a store that keeps a bucket in several shards. 0 leaves the
	// choice to the store, which sets Shard to its choice, or to 0 for several. An op that charges
	// or refunds for an earlier one has the earlier one's Shard.
	Shard int

	// KeepTaken says that the caller is admitted if Take returns ErrUnavailable or ErrUncertain.
	// The tokens of the op then stay taken. All ops of a call have the same value.
	KeepTaken bool

	// Late is set by Store.Take, and false before the call. It reports that the store's answer did
	// not come before the deadline of the call's context. The op was then decided by the state that
	// this process last saw, and each spend is an estimate.
	//
	// The attempt to reach the store continues after the call. Tokens of an admitted call are taken
	// later, always and in full, below the debt floor if need be. Of a denied call no tokens stay
	// taken. Charges and refunds are applied later, at most once. All of that is lost only with the
	// process.
	//
	// A late decision is for a store that is slow. If the store cannot be reached Take returns
	// ErrUnavailable or ErrUncertain. A context without a deadline, a canceled one and a local
	// store never lead to a late decision.
	Late bool

	// ByShare is set by Store.Take, and false before the call. It reports that a limit denied the op by
	// the share of its tokens that this process may use: the bucket may have enough. The next
	// request can have another answer.
	ByShare bool

	// Lease is the policy of the op's rules for token leases on the bucket. Only ops with a take or
	// a peek have one: a later charge or refund does not know the rules of its take.
	Lease LeasePolicy
}

// Spend is the change of one limit of a bucket by an op. Amounts are millitokens, 0 to
// tokenbucket.MaxAmount.
type Spend struct {
	Limit  string
	Take   int64 // taken if the balance has it
	Look   bool  // a peek: needs one whole token, takes none
	Charge int64 // always taken, down to the limit's debt floor
	Refund int64 // always added, up to the capacity

	// Set by Store.Take:

	// Held is false when the bucket has newer limits without this limit, or with it unlimited. Then
	// the spend passes, and the rest is unset.
	Held bool
	// Exceeded reports that this spend denied: the balance was below its need.
	Exceeded bool
	// Limits and Index name the limit in force on the bucket.
	Limits *Limits
	Index  int
	// Bucket is the state after the decision. After a denial it is refilled to now, with charges
	// and refunds, and without takes.
	Bucket tokenbucket.Bucket
}

// spend returns the op's spend of a limit, a new one unless it is there.
func (op *Op) spend(limit string) *Spend {
	for i := range op.Spends {
		if op.Spends[i].Limit == limit {
			return &op.Spends[i]
		}
	}
	sp := grow(&op.Spends)
	sp.Limit, sp.Take, sp.Look, sp.Charge, sp.Refund, sp.Held, sp.Exceeded = limit, 0, false, 0, 0, false, false
	return sp
}

// need is the balance that a spend needs.
func (sp *Spend) need() int64 {
	if sp.Look {
		return max(sp.Take, Milli)
	}
	return sp.Take
}

// requested is the amount in a status: 0 for a peek, also if less than its whole token was to be
// taken.
func (sp *Spend) requested() int64 {
	if sp.Look && sp.Take < Milli {
		return 0
	}
	return sp.Take
}

func saturatingAdd(a, b int64) int64 { return min(a+b, tokenbucket.MaxAmount) }
