package embedded

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

const (
	// OverflowSlots is how many overflow buckets the keys of one set of limits share.
	OverflowSlots = 1024
	// DefaultMaxOverflow is the most overflow buckets held at once, about 20 MiB of memory.
	DefaultMaxOverflow = 65_536

	// fullLogInterval is how often a full store is logged, in seconds.
	fullLogInterval = 60
)

// overflow counts the decisions of a full store. When there are MaxBuckets, a key without a bucket
// shares one, under its own limits, with the keys of the same slot. A slot is a hash of the
// key.
//
// Why that never admits too much: let v be the balance that a key would have by itself, and
// s that of its overflow bucket. s starts full, as v does, and each take that lowers v lowers s by
// as much. Nothing raises s but its refill, which raises v by as much until v is full:
// refunds are dropped. So s never exceeds v. A key that gets a bucket of its own
// starts with the s of that time.
//
// The limits of a key can change, and each set of limits has its own bucket in a slot. So a
// bucket comes down to those of its slot that are of another generation of limits, as
// though it had been brought under its limits from theirs.
type overflow struct {
	slots     uint32       // OverflowSlots, or fewer in tests
	held      atomic.Int64 // overflow buckets
	decisions atomic.Int64
	refused   atomic.Int64
	loggedAt  atomic.Int64 // Unix s
}

// Overflow counts the work of a store that holds its MaxBuckets.
type Overflow struct {
	Buckets   int64 // that are shared, held now
	Decisions int64 // parts of decisions that a shared bucket made
	Refused   int64 // parts of decisions denied because MaxOverflow was reached too
}

// slotOf returns the slot of a key. It is the same in every process, because the file keeps
// overflow buckets. A client that finds keys of one slot gains nothing: to use up all slots
// is less work than to fill the store.
func (o *overflow) slotOf(k *limiter.BucketKey) string {
	return o.slotShort(shortname.Of(k.Entity), shortname.Of(k.Resource))
}

// slotShort is slotOf of names as buckets keep them.
func (o *overflow) slotShort(entity, resource string) string {
	const prime = 1099511628211 // of FNV-1a
	h := uint64(14695981039346656037)
	for _, name := range [...]string{entity, resource} {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * prime
		}
		h = (h ^ 0x100) * prime // no byte: parts the names
	}
	h ^= h >> 32                                                         // the low bits alone are poor
	return string(binary.BigEndian.AppendUint32(nil, uint32(h)%o.slots)) // #nosec G115 -- the low bits
}

// onlyCharges reports whether an op takes nothing that it could be denied.
func onlyCharges(op *limiter.Op) bool {
	return !slices.ContainsFunc(op.Spends, func(sp limiter.Spend) bool { return sp.Take > 0 || sp.Look })
}

// sharedResource tells the overflow buckets of a slot apart in the file.
func sharedResource(limits *limiter.Limits) string {
	return string(binary.BigEndian.AppendUint64(nil, limits.Hash()))
}

// emptyBucket returns a bucket that denies, and that no store has.
func emptyBucket(op *limiter.Op, now int64) *bucket {
	b := newBucket(op, now)
	for i := range b.limits.Len() {
		*b.balance(i) = tokenbucket.Bucket{Refilled: now}
	}
	return b
}
