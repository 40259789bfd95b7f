package embedded

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

const (
	// OverflowSlots is how many overflow buckets the keys of one set of limits share.
	OverflowSlots = 1024
	// DefaultMaxOverflow is the most overflow buckets in memory, about 20 MiB.
	DefaultMaxOverflow = 65_536

	// fullLogInterval is the least time between two logs of a full store, in seconds.
	fullLogInterval = 60
)

// overflow counts the decisions of a full store. When there are MaxBuckets, keys without a bucket
// share the overflow bucket of their slot and limits. A slot is a hash of the key.
//
// Why that never admits too much: let v be the balance that a key would have alone, and s that of
// its overflow bucket. s starts full, as v does, and each take that lowers v lowers s by as much.
// Only refill raises s, and raises v by as much until v is full: refunds are dropped. So s never
// exceeds v. A key that gets its own bucket starts with the s of that time.
//
// The limits of a key can change, and each set of limits has its own bucket in a slot. So a bucket
// is reduced to the other buckets of its slot, if their limits have another generation. It is then
// as low as if its limits had been updated from theirs.
type overflow struct {
	slots     uint32       // OverflowSlots, or fewer in tests
	held      atomic.Int64 // overflow buckets
	decisions atomic.Int64
	refused   atomic.Int64
	loggedAt  atomic.Int64 // Unix s
}

// Overflow counts the work of a store that has MaxBuckets.
type Overflow struct {
	Buckets   int64 // shared ones in memory now
	Decisions int64 // parts of decisions by a shared bucket
	Refused   int64 // parts of decisions denied because MaxOverflow was reached too
}

// slotOf returns the slot of a key. It is the same in every process, because the file has overflow
// buckets. A client that finds keys of one slot gains nothing: to use up all slots is less work
// than to fill the store.
func (o *overflow) slotOf(k *limiter.BucketKey) string {
	return o.slotShort(limiter.ShortName(k.Entity), limiter.ShortName(k.Resource))
}

// slotShort is slotOf of shortened names.
func (o *overflow) slotShort(entity, resource string) string {
	const prime = 1099511628211 // of FNV-1a
	h := uint64(14695981039346656037)
	for _, name := range [...]string{entity, resource} {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * prime
		}
		h = (h ^ 0x100) * prime // not a byte: separates the names
	}
	h ^= h >> 32                                                         // the low bits alone are poor
	return string(binary.BigEndian.AppendUint32(nil, uint32(h)%o.slots)) // #nosec G115 -- the low bits
}

// onlyCharges reports whether an op has no take and no peek, so that it cannot be denied.
func onlyCharges(op *limiter.Op) bool {
	return !slices.ContainsFunc(op.Spends, func(sp limiter.Spend) bool { return sp.Take > 0 || sp.Look })
}

// sharedResource identifies an overflow bucket within its slot, by its limits.
func sharedResource(limits *limiter.Limits) string {
	return string(binary.BigEndian.AppendUint64(nil, limits.Hash()))
}

// emptyBucket returns a bucket that denies, and that is in no store.
func emptyBucket(op *limiter.Op, now int64) *bucket {
	b := newBucket(op, now)
	for i := range b.limits.Len() {
		*b.balance(i) = tokenbucket.Bucket{Refilled: now}
	}
	return b
}
