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
func (s *Store) Overflow() Overflow {
	o := &s.overflow
	return Overflow{Buckets: o.held.Load(), Decisions: o.decisions.Load(), Refused: o.refused.Load()}
}

// slotOf returns the slot of a key. It is the same in every process, because the file keeps
// overflow buckets. A client that finds keys of one slot gains nothing: to use up all slots
// is less work than to fill the store.
func (s *Store) slotOf(k *limiter.BucketKey) string {
	return s.slotKept(shortname.Of(k.Entity), shortname.Of(k.Resource))
}

// slotKept is slotOf of names as buckets keep them.
func (s *Store) slotKept(entity, resource string) string {
	const prime = 1099511628211 // of FNV-1a
	h := uint64(14695981039346656037)
	for _, name := range [...]string{entity, resource} {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * prime
		}
		h = (h ^ 0x100) * prime // no byte: parts the names
	}
	h ^= h >> 32                                                                  // the low bits alone are poor
	return string(binary.BigEndian.AppendUint32(nil, uint32(h)%s.overflow.slots)) // #nosec G115 -- the low bits
}

// openShared returns the overflow bucket of an op. When there is none and no room for it,
// or when it is one of held, it returns one that only denies. The overflow shard must be
// locked.
func (s *Store) openShared(now int64, op *limiter.Op, held []opened) (opened, error) {
	sh := &s.shards[overflowShard]
	if sh.buckets == nil {
		return opened{}, limiter.ErrClosed
	}
	s.overflow.decisions.Add(1)
	s.sayFull(now)
	slot := s.slotOf(&op.Bucket)
	h := opened{shard: sh, hash: s.hashKept(op.Bucket.Namespace, slot, "", op.Bucket.Variant)}
	for h.bucket = sh.buckets[h.hash]; h.bucket != nil; h.bucket = h.bucket.next {
		if h.bucket.inSlot(&op.Bucket, slot) && h.bucket.limits.Hash() == op.Limits.Hash() {
			break
		}
	}
	switch {
	case h.bucket != nil && slices.ContainsFunc(held, func(o opened) bool { return o.bucket == h.bucket }) && onlyBooks(op):
		h.bucket, h.none, h.later = emptyBucket(op, now), true, true
		return h, nil
	case h.bucket == nil && s.overflow.held.Load() >= s.cfg.MaxOverflow,
		h.bucket != nil && slices.ContainsFunc(held, func(o opened) bool { return o.bucket == h.bucket }):
		s.overflow.refused.Add(1)
		h.bucket, h.none = emptyBucket(op, now), true
		return h, nil
	case h.bucket == nil:
		h.bucket, h.created = s.newShared(sh, h.hash, slot, now, op), true
	case s.disk != nil && h.bucket.block == nil:
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
func (s *Store) newShared(sh *shard, hash uint64, slot string, now int64, op *limiter.Op) *bucket {
	b := s.newBucket(op, now)
	b.shared, b.entity, b.resource = true, slot, unique.Make(sharedResource(op.Limits))
	b.next = sh.buckets[hash]
	sh.buckets[hash] = b
	s.overflow.held.Add(1)
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
func (s *Store) inherit(b *bucket, op *limiter.Op, now int64) {
	sh := &s.shards[overflowShard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	slot := s.slotOf(&op.Bucket)
	b.share(sh.buckets[s.hashKept(op.Bucket.Namespace, slot, "", op.Bucket.Variant)], op, slot, now)
}

// inheritAll is inherit of a bucket of a backup: its generation says nothing here, and its
// limits are none that those here were raised to.
func (s *Store) inheritAll(b *bucket, now int64) {
	sh := &s.shards[overflowShard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	namespace, slot := b.namespace.Value(), s.slotKept(b.entity, b.resource.Value())
	key := limiter.BucketKey{Namespace: namespace, Variant: b.variant}
	for other := sh.buckets[s.hashKept(namespace, slot, "", b.variant)]; other != nil; other = other.next {
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
func (s *Store) sayFull(now int64) {
	at := now / 1000
	last := s.overflow.saidAt.Load()
	if last != 0 && at-last < overflowSaid || !s.overflow.saidAt.CompareAndSwap(last, at) {
		return
	}
	s.cfg.Logger.Warn("the embedded store is full: keys without a bucket share overflow buckets, and may be denied needlessly",
		slog.Int64("max_buckets", s.cfg.MaxBuckets), slog.Int64("overflow_buckets", s.overflow.held.Load()), slog.Int64("decisions", s.overflow.decisions.Load()))
}
