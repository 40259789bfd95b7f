package embedded

import (
	"encoding/binary"
	"log/slog"
	"slices"
	"sync/atomic"
	"unique"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

const (
	// OverflowSlots is how many overflow buckets the keys of one set of limits share.
	OverflowSlots = 1024
	// DefaultMaxOverflow is the most overflow buckets held at once, about 20 MiB of memory.
	DefaultMaxOverflow = 65_536

	// overflowShard is the shard of all overflow buckets. Its lock is taken after all others.
	overflowShard = shardCount
	// overflowSaid is how often a full store is logged, in seconds.
	overflowSaid = 60
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
	saidAt    atomic.Int64 // Unix s
}

// Overflow counts the work of a store that holds its MaxBuckets.
type Overflow struct {
	Buckets   int64 // that are shared, held now
	Decisions int64 // parts of decisions that a shared bucket made
	Refused   int64 // parts of decisions denied because MaxOverflow was reached too
}

// Overflow returns how much the store does for keys that it has no room for.
func (t *table) Overflow() Overflow {
	o := &t.overflow
	return Overflow{Buckets: o.held.Load(), Decisions: o.decisions.Load(), Refused: o.refused.Load()}
}

// slotOf returns the slot of a key. It is the same in every process, because the file keeps
// overflow buckets. A client that finds keys of one slot gains nothing: to use up all slots
// is less work than to fill the store.
func (o *overflow) slotOf(k *limiter.BucketKey) string {
	return o.slotKept(shortname.Of(k.Entity), shortname.Of(k.Resource))
}

// slotKept is slotOf of names as buckets keep them.
func (o *overflow) slotKept(entity, resource string) string {
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

// openShared returns the overflow bucket of an op. When there is none and no room for it,
// or when it is one of held, it returns one that only denies. The overflow shard must be
// locked.
func (t *table) openShared(now int64, op *limiter.Op, held []opened) (opened, error) {
	sh := &t.shards[overflowShard]
	if sh.buckets == nil {
		return opened{}, limiter.ErrClosed
	}
	t.overflow.decisions.Add(1)
	t.sayFull(now)
	slot := t.overflow.slotOf(&op.Bucket)
	h := opened{shard: sh, hash: t.hashKept(op.Bucket.Namespace, slot, "", op.Bucket.Variant)}
	for h.bucket = sh.buckets[h.hash]; h.bucket != nil; h.bucket = h.bucket.next {
		if h.bucket.inSlot(&op.Bucket, slot) && h.bucket.limits.Hash() == op.Limits.Hash() {
			break
		}
	}
	switch {
	case h.bucket != nil && slices.ContainsFunc(held, func(o opened) bool { return o.bucket == h.bucket }) && onlyBooks(op):
		h.bucket, h.none, h.later = emptyBucket(op, now), true, true
		return h, nil
	case h.bucket == nil && t.overflow.held.Load() >= t.cfg.MaxOverflow,
		h.bucket != nil && slices.ContainsFunc(held, func(o opened) bool { return o.bucket == h.bucket }):
		t.overflow.refused.Add(1)
		h.bucket, h.none = emptyBucket(op, now), true
		return h, nil
	case h.bucket == nil:
		h.bucket, h.created = t.newShared(sh, h.hash, slot, now, op), true
	case t.durable && h.bucket.block == nil:
		h.bucket.block = storedBlock(h.bucket.limits, now)
	}
	h.bucket.share(sh.buckets[h.hash], op, slot, now)
	return h, nil
}

// onlyBooks reports whether an op takes nothing that it could be denied.
func onlyBooks(op *limiter.Op) bool {
	return !slices.ContainsFunc(op.Spends, func(sp limiter.Spend) bool { return sp.Take > 0 || sp.Look })
}

// newShared adds a full overflow bucket. Its generation stays that of its first op.
func (t *table) newShared(sh *shard, hash uint64, slot string, now int64, op *limiter.Op) *bucket {
	b := t.newBucket(op, now)
	b.shared, b.entity, b.resource = true, slot, unique.Make(sharedResource(op.Limits))
	b.next = sh.buckets[hash]
	sh.buckets[hash] = b
	t.overflow.held.Add(1)
	return b
}

// sharedResource tells the overflow buckets of a slot apart in the file.
func sharedResource(limits *limiter.Limits) string {
	return string(binary.BigEndian.AppendUint64(nil, limits.Hash()))
}

// inSlot reports whether this is an overflow bucket of the key, under any limits.
func (b *bucket) inSlot(k *limiter.BucketKey, slot string) bool {
	return b.shared && b.variant == k.Variant && b.entity == slot && b.namespace.Value() == k.Namespace
}

// share lowers a bucket of op's key to the balances of the overflow buckets of its slot,
// brought under its limits. It leaves out those that cannot have had the key. The overflow
// shard must be locked.
func (b *bucket) share(first *bucket, op *limiter.Op, slot string, now int64) {
	for other := first; other != nil; other = other.next {
		if other == b || !other.inSlot(&op.Bucket, slot) {
			continue
		}
		if other.generation != op.Generation || other.limits.Hash() == op.Limits.Hash() {
			b.lower(other, true, now)
		}
	}
}

// inherit lowers the new bucket of a key to the balances of its overflow buckets. The key's shard
// must be locked.
func (t *table) inherit(b *bucket, op *limiter.Op, now int64) {
	sh := &t.shards[overflowShard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	slot := t.overflow.slotOf(&op.Bucket)
	b.share(sh.buckets[t.hashKept(op.Bucket.Namespace, slot, "", op.Bucket.Variant)], op, slot, now)
}

// inheritAll is inherit of a bucket of a backup: its generation says nothing here, and its
// limits are none that those here were raised to.
func (t *table) inheritAll(b *bucket, now int64) {
	sh := &t.shards[overflowShard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	namespace, slot := b.namespace.Value(), t.overflow.slotKept(b.entity, b.resource.Value())
	key := limiter.BucketKey{Namespace: namespace, Variant: b.variant}
	for other := sh.buckets[t.hashKept(namespace, slot, "", b.variant)]; other != nil; other = other.next {
		if other.inSlot(&key, slot) {
			b.lower(other, false, now)
		}
	}
}

// emptyBucket returns a bucket that denies, and that no store has.
func emptyBucket(op *limiter.Op, now int64) *bucket {
	b := newBucket(op, now)
	for i := range b.limits.Len() {
		*b.balance(i) = tokenbucket.Bucket{Refilled: now}
	}
	return b
}

// sayFull says once a minute that the store is full.
func (t *table) sayFull(now int64) {
	at := now / 1000
	last := t.overflow.saidAt.Load()
	if last != 0 && at-last < overflowSaid || !t.overflow.saidAt.CompareAndSwap(last, at) {
		return
	}
	t.cfg.Logger.Warn("the embedded store is full: keys without a bucket share overflow buckets, and may be denied needlessly",
		slog.Int64("max_buckets", t.cfg.MaxBuckets), slog.Int64("overflow_buckets", t.overflow.held.Load()), slog.Int64("decisions", t.overflow.decisions.Load()))
}
