package embedded

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"unique"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// shardCount keeps a sweep of one shard short (some hundred buckets of a million), and makes it
	// unlikely that two hot buckets share a lock.
	shardCount = 4096
	// overflowShard is the shard of all overflow buckets. Its lock is taken after all others.
	overflowShard = shardCount
)

// shard is a part of the buckets, by hash. A nil map means that the store is closed.
type shard struct {
	mu      sync.Mutex
	buckets map[uint64]*bucket
	_       [48]byte // a cache line of its own
}

// sameAs returns the bucket of the same names, nil for none. The shard must be locked.
func (sh *shard) sameAs(hash uint64, of *bucket) *bucket {
	b := sh.buckets[hash]
	for b != nil && (b.variant != of.variant || b.window != of.window || b.shared != of.shared || b.entity != of.entity || b.resource != of.resource || b.namespace != of.namespace) {
		b = b.next
	}
	return b
}

// opened is a bucket of a decision over several buckets.
type opened struct {
	shard   *shard
	hash    uint64
	bucket  *bucket
	created bool
	none    bool // the bucket is not in the store, and only denies
	later   bool // the op is deferred: it is applied after the decision, because an earlier op has its bucket
}

// table is the buckets in memory. It knows nothing about the file, except that there is one.
type table struct {
	cfg      *Config
	durable  bool // each bucket has a block
	seed     maphash.Seed
	buckets  atomic.Int64          // without overflow buckets
	shards   [shardCount + 1]shard // the last has the overflow buckets
	overflow overflow
}

// newTable returns an empty table.
func newTable(cfg *Config, durable bool) *table {
	t := &table{cfg: cfg, durable: durable, seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].buckets = make(map[uint64]*bucket)
	}
	t.overflow.slots = OverflowSlots
	return t
}

// close drops all buckets, and passes them to keep first, shard by shard.
func (t *table) close(keep func(map[uint64]*bucket)) {
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.Lock()
		if i == overflowShard {
			t.overflow.held.Store(0)
		} else {
			t.buckets.Add(-int64(len(sh.buckets)))
		}
		if sh.buckets != nil { // otherwise an earlier Close has them, and may be reading
			keep(sh.buckets)
		}
		sh.buckets = nil
		sh.mu.Unlock()
	}
}

// hash finds a bucket. Each store has a random seed, so that no client can choose names that
// collide; bucket.is compares the names.
func (t *table) hash(k *limiter.BucketKey) uint64 {
	return t.hashShort(k.Namespace, limiter.ShortName(k.Entity), limiter.ShortName(k.Resource), k.Variant, k.Window)
}

// hashOf is hash of the names in a bucket.
func (t *table) hashOf(b *bucket) (uint64, *shard) {
	if b.shared {
		return t.hashShort(b.namespace.Value(), b.entity, "", b.variant, b.window.value()), &t.shards[overflowShard]
	}
	hash := t.hashShort(b.namespace.Value(), b.entity, b.resource.Value(), b.variant, b.window.value())
	return hash, &t.shards[hash%shardCount]
}

// hashShort is hash of shortened names.
func (t *table) hashShort(namespace, entity, resource string, variant uint64, window limiter.Window) uint64 {
	const odd = 0x9e3779b97f4a7c15 // 2^64/φ: spreads the parts, so that they do not cancel out
	h := maphash.String(t.seed, entity)
	h = h*odd + maphash.String(t.seed, resource)
	if namespace != limiter.DefaultNamespace { // most installations have no other
		h = h*odd + maphash.String(t.seed, namespace)
	}
	h = (h + variant) * odd
	if window != (limiter.Window{}) {
		h = (h + uint64(window.Start)) * odd // #nosec G115 -- bits of a hash
		h = (h + uint64(window.End)) * odd   // #nosec G115 -- likewise
		h = (h + window.Calendar) * odd
	}
	return h ^ h>>32
}

// newBucket returns the full bucket of an op.
func (t *table) newBucket(op *limiter.Op, now int64) *bucket {
	if t.durable {
		return newDurableBucket(op, now)
	}
	return newBucket(op, now)
}

// drop removes a bucket. The shard must be locked.
func (t *table) drop(sh *shard, hash uint64, b *bucket) {
	first := sh.buckets[hash]
	switch {
	case first == b && b.next == nil:
		delete(sh.buckets, hash)
	case first == b:
		sh.buckets[hash] = b.next
	default:
		for first.next != b {
			first = first.next
		}
		first.next = b.next
	}
	t.count(b, -1)
}

// count counts n more buckets of a kind.
func (t *table) count(b *bucket, n int64) {
	if b.shared {
		t.overflow.held.Add(n)
	} else {
		t.buckets.Add(n)
	}
}

func (t *table) lock(indices []uint16) {
	for _, i := range indices {
		t.shards[i].mu.Lock()
	}
}

func (t *table) unlock(indices []uint16) {
	for _, i := range indices {
		t.shards[i].mu.Unlock()
	}
}

// shardsOf appends the indices of the shards of the given buckets, each once and in ascending
// order. Every decision locks in this order, so no decisions deadlock.
func shardsOf(indices []uint16, held []opened) []uint16 {
	for i := range held {
		indices = append(indices, uint16(held[i].hash%shardCount))
	}
	slices.Sort(indices)
	return slices.Compact(indices)
}

// Buckets returns the number of buckets in memory, without overflow buckets.
func (t *table) Buckets() int64 { return t.buckets.Load() }

// namesOfBuckets returns the names of the namespaces that have buckets, each once.
func (t *table) namesOfBuckets() []string {
	seen := make(map[unique.Handle[string]]bool)
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.Lock()
		for _, b := range sh.buckets {
			for ; b != nil; b = b.next {
				seen[b.namespace] = true
			}
		}
		sh.mu.Unlock()
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name.Value())
	}
	return names
}
