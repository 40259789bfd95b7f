package embedded

import (
	"encoding/binary"
	"strings"
	"unique"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// bucket is the balances of one entity for one resource. A million of them fit in 256 MiB: names
// that repeat are shared, and most buckets have one limit. Its shard's lock guards it.
type bucket struct {
	contents

	namespace unique.Handle[string]
	resource  unique.Handle[string]
	entity    string
	variant   uint64
	next      *bucket // of the same hash
	block     *block  // nil in a store without a file
	shared    bool    // an overflow bucket: entity is its slot, resource its limits
}

// newBucket returns the full bucket of an op. It retains no string of the op.
func newBucket(op *limiter.Op, now int64) *bucket {
	b := &bucket{}
	b.init(op, now)
	return b
}

// newDurableBucket is newBucket for a store with a file, which has no state of the bucket yet. A
// bucket and its block are one allocation, because decisions need both.
func newDurableBucket(op *limiter.Op, now int64) *bucket {
	d := &struct {
		bucket bucket
		block  block
	}{}
	d.bucket.init(op, now)
	d.block.init(op.Limits, now)
	d.bucket.block = &d.block
	return &d.bucket
}

func (b *bucket) init(op *limiter.Op, now int64) {
	entity, resource := limiter.ShortName(op.Bucket.Entity), limiter.ShortName(op.Bucket.Resource)
	*b = bucket{
		namespace: unique.Make(op.Bucket.Namespace),
		resource:  unique.Make(resource),
		entity:    strings.Clone(entity),
		variant:   op.Bucket.Variant,
		contents:  contents{limits: op.Limits, generation: op.Generation, window: newWindow(op.Bucket.Window)},
	}
	b.makeBalances()
	for i := range op.Limits.Len() {
		*b.balance(i) = tokenbucket.Full(op.Limits.Params(i), now)
	}
}

// is reports whether this is the bucket of the key.
func (b *bucket) is(k *limiter.BucketKey) bool {
	return b.variant == k.Variant && b.window.value() == k.Window && !b.shared && b.entity == limiter.ShortName(k.Entity) &&
		b.resource.Value() == limiter.ShortName(k.Resource) && b.namespace.Value() == k.Namespace
}

// applyLimits updates the limits of the bucket if these are newer than its own, see limiter.Op.
func (b *bucket) applyLimits(to *limiter.Limits, generation uint64, now int64) {
	from := b.limits
	if b.contents.applyLimits(to, generation, now) && b.block != nil {
		b.block.replaceLimits(from, to)
	}
}

// prepare computes the spends of op after refill and refunds. It reports whether each spend finds
// the tokens that it needs. It changes nothing but op, and may be called again.
func (b *bucket) prepare(op *limiter.Op, now int64) bool {
	enough := true
	for i := range op.Spends {
		sp := &op.Spends[i]
		sp.Exceeded, sp.Limits = false, b.limits
		sp.Index = b.limits.Find(sp.Limit)
		sp.Held = sp.Index >= 0 && !b.limits.Unlimited(sp.Index)
		if !sp.Held {
			continue
		}
		p, t := b.limits.Params(sp.Index), &sp.Bucket
		*t = b.balance(sp.Index).Refill(p, now)
		if give := sp.Refund - sp.Charge; give > 0 && !b.shared {
			*t = t.ForceConsume(p, -give, now)
		}
		if sp.Take > 0 && t.Tokens < sp.Take || sp.Look && t.Tokens < limiter.Milli {
			sp.Exceeded, enough = true, false
		}
	}
	return enough
}

// state returns the bucket as of now.
func (b *bucket) state(key limiter.BucketKey, now int64) limiter.BucketState {
	out := limiter.BucketState{Key: key, Limits: make([]limiter.LimitState, b.limits.Len())}
	for i := range out.Limits {
		out.Limits[i].Limit = b.limits.At(i)
		if !b.limits.Unlimited(i) {
			at := b.balance(i).Refill(b.limits.Params(i), now)
			out.Limits[i].Tokens, out.Limits[i].Carried = at.Tokens, at.Carried
		}
	}
	return out
}

// inSlot reports whether this is an overflow bucket of the key, under any limits.
func (b *bucket) inSlot(k *limiter.BucketKey, slot string) bool {
	return b.shared && b.variant == k.Variant && b.window.value() == k.Window && b.entity == slot && b.namespace.Value() == k.Namespace
}

// Flags of a key.
const (
	sharedKey   = 1 // an overflow bucket
	windowedKey = 2 // a window follows
)

// windowSize is how many bytes of a key are those of a window.
const windowSize = 24

// identity returns the identity of the bucket, by which the file finds it.
func (b *bucket) identity() []byte {
	namespace, resource := b.namespace.Value(), b.resource.Value()
	buf := make([]byte, 0, len(namespace)+len(b.entity)+len(resource)+3*binary.MaxVarintLen16+8+1+windowSize)
	buf = appendText(buf, namespace)
	buf = appendText(buf, b.entity)
	buf = appendText(buf, resource)
	buf = binary.BigEndian.AppendUint64(buf, b.variant)
	w := b.window.value()
	windowed := w != limiter.Window{}
	buf = append(buf, byteOf(b.shared)*sharedKey|byteOf(windowed)*windowedKey)
	if windowed {
		buf = binary.BigEndian.AppendUint64(buf, uint64(w.Start)) // #nosec G115 -- read as it is written
		buf = binary.BigEndian.AppendUint64(buf, uint64(w.End))   // #nosec G115 -- likewise
		buf = binary.BigEndian.AppendUint64(buf, w.Calendar)
	}
	return buf
}

// closable reports whether no caller has used the bucket since a time, and none waits for its
// block.
func (b *bucket) closable(since int64) bool {
	for i := range b.limits.Len() {
		if b.block.span(i).need > 0 {
			return false
		}
	}
	return !b.touched(since)
}

// unused reports whether the bucket, here and in the file, has no more than a new one would have.
func (b *bucket) unused(now int64) bool {
	k := b.block
	return (k == nil || !k.stored && !k.queued && !k.inFlight && !k.unsaved()) && b.full(now)
}
