package limiter

import "github.com/ratelimit/ratelimit/pkg/tokenbucket"

// BucketKey identifies a bucket. Two keys are the same bucket only if all fields are equal.
type BucketKey struct {
	Namespace string
	Entity    string // any bytes
	Resource  string // any bytes
	Variant   uint64 // 0 for the ordinary bucket; otherwise own limits, a label, or a shadow have buckets apart
}

// ShadowVariants is the least variant of buckets that limits are tried on. No other bucket has such
// a variant, so that the key alone says of a bucket in a store that it is a shadow.
const ShadowVariants uint64 = 0xffffff << 40

// Shadow reports whether limits are tried on the bucket, see [Take.Shadow]. What it consumes was
// consumed from other buckets too, and so is no usage.
func (k BucketKey) Shadow() bool { return k.Variant >= ShadowVariants }

// Op is one bucket's part of a decision.
//
// # Limits of the bucket
//
// A bucket remembers the limits it is under, and their version: (Generation,
// Limits.Hash()), ordered by generation, then by hash. A missing bucket is
// created full, under the op's limits. When the hashes differ and the op's version
// is greater, the bucket is brought under the op's limits before anything else:
// each limit it holds is refilled under its old numbers, and then its use is carried
// over to the new ones (tokenbucket.Bucket.Reparameterize). A capacity raised by d
// raises the balance by d, a lowered one cuts it. A limit that is gone stays dormant
// under its old numbers while it has use, so that one that comes back has its use of
// before. A limit that has no use is the same as one that the bucket never held, and
// starts full. When the op's version is smaller, the bucket decides under the newer limits
// that it already has. When the hashes are equal the generation is raised to the op's.
//
// Refill makes up for use that a full balance carries. When a store takes from such a
// balance, it may drop the part of a millitoken that was made up for.
//
// A bucket may forget dormant limits beyond MaxDormant, those first that have the
// least time left until they are without use. Until the last of all that it forgot
// would be, a limit that the bucket does not hold starts empty: with no token, and the
// greatest use that any of them had when it was forgotten, if that is more than its
// capacity. So no change of limits returns used tokens, however many there are. A debt
// that is forgotten is remitted: charges stand outside of the bound.
//
// # Order within an op
//
// The steps of each spend:
//
//  1. The balance is refilled to now.
//  2. Refund and Charge are netted. A net refund is added, up to the capacity.
//  3. A Take above 0 is admitted if the balance is at least Take, and a Look if it is at
//     least one whole token. A spend with neither is always admitted, also in debt.
//  4. A net charge is subtracted, down to the limit's debt floor and no further. The
//     remainder of the refill is kept. A balance below the floor stays.
//
// # Strings
//
// Strings of an op may share memory with a whole message: a store clones what it keeps.
type Op struct {
	Bucket     BucketKey
	Limits     *Limits // not empty
	Generation uint64
	Spends     []Spend // not empty; every Limit once

	// Shard is where the op goes in a store that keeps a bucket in several parts: 0
	// leaves it to the store, which sets it to where the op went, or to 0 where it went
	// to several. An op that books more or gives back of what an earlier one took has
	// that one's Shard.
	Shard int

	// KeepTaken says that the caller is admitted where Take returns ErrUnavailable or
	// ErrUncertain. The tokens of the op then stay taken. All ops of a call have the same.
	KeepTaken bool

	// Late is set by Store.Take, and false before the call. It reports that the store's
	// answer did not come before the deadline of the call's context, and that the op was
	// decided by the state that this process last saw. Each spend then holds an estimate.
	//
	// The attempt to reach the store goes on after the call. Tokens of an admitted call are
	// taken later, always and in full, below the debt floor if need be. Of a denied call no
	// tokens stay taken. Charges and refunds are applied later, at most once. All of that is
	// lost only with the process.
	//
	// A late decision is for a store that is slow. Where the store cannot be reached Take
	// returns ErrUnavailable or ErrUncertain. A context without a deadline, a canceled one
	// and a local store never lead to a late decision.
	Late bool

	// Lease is what the op's rules let the store do with token leases on the bucket. It
	// means something only of an op that takes or looks: what is charged or given back
	// later does not know the rules that it was taken by.
	Lease LeasePolicy
}

// Spend is what an op does with one limit of its bucket. Amounts are millitokens,
// 0 to tokenbucket.MaxAmount.
type Spend struct {
	Limit  string
	Take   int64 // taken if there
	Look   bool  // asks for one whole token, takes none
	Charge int64 // booked always, down to the limit's debt floor
	Refund int64 // given back always, up to the capacity

	// Set by Store.Take:

	// Held is false when the bucket is under newer limits that have no such limit,
	// or have it unlimited: then the spend passes, and the rest is unset.
	Held bool
	// Exceeded reports that this spend did not find what it needs.
	Exceeded bool
	// Limits and Index name the limit that the bucket is under.
	Limits *Limits
	Index  int
	// Bucket is the state after the decision. Where the decision was a denial it is
	// refilled to now, and charges and refunds are in it, takes are not.
	Bucket tokenbucket.Bucket
}

// find returns the op's spend of a limit, nil when it has none.
func (op *Op) find(limit string) *Spend {
	for i := range op.Spends {
		if op.Spends[i].Limit == limit {
			return &op.Spends[i]
		}
	}
	return nil
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

// need is the balance that a spend asks for.
func (sp *Spend) need() int64 {
	if sp.Look {
		return max(sp.Take, Milli)
	}
	return sp.Take
}

// requested is what a status says was asked for: 0, for a look, also where less
// than the whole token of a look was to be taken.
func (sp *Spend) requested() int64 {
	if sp.Look && sp.Take < Milli {
		return 0
	}
	return sp.Take
}

func saturatingAdd(a, b int64) int64 { return min(a+b, tokenbucket.MaxAmount) }
