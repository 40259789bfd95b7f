package embedded

import (
	"log/slog"
	"slices"
	"unique"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Overflow returns the work of the overflow buckets.
func (t *table) Overflow() Overflow {
	o := &t.overflow
	return Overflow{Buckets: o.held.Load(), Decisions: o.decisions.Load(), Refused: o.refused.Load()}
}

// openShared returns the overflow bucket of an op. It returns one that only denies if there is no
// room, or if the bucket is among held. The overflow shard must be locked.
func (t *table) openShared(now int64, op *limiter.Op, held []opened) (opened, error) {
	sh := &t.shards[overflowShard]
	if sh.buckets == nil {
		return opened{}, limiter.ErrClosed
	}
	t.overflow.decisions.Add(1)
	t.logFull(now)
	slot := t.overflow.slotOf(&op.Bucket)
	h := opened{shard: sh, hash: t.hashShort(op.Bucket.Namespace, slot, "", op.Bucket.Variant, op.Bucket.Window)}
	for h.bucket = sh.buckets[h.hash]; h.bucket != nil; h.bucket = h.bucket.next {
		if h.bucket.inSlot(&op.Bucket, slot) && h.bucket.limits.Hash() == op.Limits.Hash() {
			break
		}
	}
	switch {
	case h.bucket != nil && slices.ContainsFunc(held, func(o opened) bool { return o.bucket == h.bucket }) && onlyCharges(op):
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

// newShared adds a full overflow bucket. Its generation remains that of its first op.
func (t *table) newShared(sh *shard, hash uint64, slot string, now int64, op *limiter.Op) *bucket {
	b := t.newBucket(op, now)
	b.shared, b.entity, b.resource = true, slot, unique.Make(sharedResource(op.Limits))
	b.next = sh.buckets[hash]
	sh.buckets[hash] = b
	t.overflow.held.Add(1)
	return b
}

// share reduces a bucket of op's key to the balances of the overflow buckets of its slot, with its
// limits applied. It leaves out those that cannot have served the key. The overflow shard must be
// locked.
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

// inherit reduces the new bucket of a key to the balances of its overflow buckets. The key's shard
// must be locked.
func (t *table) inherit(b *bucket, op *limiter.Op, now int64) {
	sh := &t.shards[overflowShard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	slot := t.overflow.slotOf(&op.Bucket)
	b.share(sh.buckets[t.hashShort(op.Bucket.Namespace, slot, "", op.Bucket.Variant, op.Bucket.Window)], op, slot, now)
}

// inheritAll is inherit of a bucket of a backup. Its generation means nothing here, and its limits
// were not raised from those of this store.
func (t *table) inheritAll(b *bucket, now int64) {
	sh := &t.shards[overflowShard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	namespace, slot := b.namespace.Value(), t.overflow.slotShort(b.entity, b.resource.Value())
	key := limiter.BucketKey{Namespace: namespace, Variant: b.variant, Window: b.window.value()}
	for other := sh.buckets[t.hashShort(namespace, slot, "", b.variant, b.window.value())]; other != nil; other = other.next {
		if other.inSlot(&key, slot) {
			b.lower(other, false, now)
		}
	}
}

// logFull logs a full store, once a minute.
func (t *table) logFull(now int64) {
	at := now / 1000
	last := t.overflow.loggedAt.Load()
	if last != 0 && at-last < fullLogInterval || !t.overflow.loggedAt.CompareAndSwap(last, at) {
		return
	}
	t.cfg.Logger.Warn("the embedded store is full: keys without a bucket share overflow buckets, and may be denied needlessly",
		slog.Int64("max_buckets", t.cfg.MaxBuckets), slog.Int64("overflow_buckets", t.overflow.held.Load()), slog.Int64("decisions", t.overflow.decisions.Load()))
}
