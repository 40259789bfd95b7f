package limiter

import (
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// CacheStats reports on the cache of catalog records.
type CacheStats struct {
	Hits   uint64        // records found in the cache
	Misses uint64        // records that had to be read
	Size   int           // records in the cache, also of absence
	TTL    time.Duration // how long a record is used
}

// recordCache caches records of a remote store's catalog, also their absence. It only saves reads:
// losing an entry costs nothing else.
//
// For each namespace it has the newest generation whose change was applied. Its answers are of at
// least that generation. A change marks the records that it names as old, and then raises the
// number. Records from a read are old if a change arrived during the read. Old records stay in the
// cache, as those last seen, for a store that is slow or unavailable.
type recordCache struct {
	ttl          time.Duration
	hits, misses atomic.Uint64

	mu      sync.Mutex
	records *lru.Cache[cacheKey, cachedRecord]
	seen    map[string]uint64 // by namespace
	seenAll uint64            // of changes to all namespaces

	// Records that were read at a smaller generation are old, although no change named them.
	floors map[string]uint64 // by namespace
	floor  uint64            // of all namespaces
}

type cacheKey struct {
	namespace string
	ref       Ref
}

// keyOf returns the key of a record; long names are short in it.
func keyOf(namespace string, ref Ref) cacheKey {
	ref.Entity, ref.Resource = ShortName(ref.Entity), ShortName(ref.Resource)
	return cacheKey{namespace, ref}
}

type cachedRecord struct {
	record     Record
	expires    time.Time // zero: a change has named the record
	generation uint64    // of the read
}

// newRecordCache returns a cache; a ttl below 0 caches nothing.
func newRecordCache(ttl time.Duration, size int) *recordCache {
	if ttl == 0 {
		ttl = DefaultCacheTTL
	}
	if size <= 0 {
		size = DefaultCacheSize
	}
	c := &recordCache{ttl: max(ttl, 0), seen: make(map[string]uint64), floors: make(map[string]uint64)}
	c.records, _ = lru.New[cacheKey, cachedRecord](size) // fails for a size below 1 only
	return c
}

func (c *recordCache) stats() CacheStats {
	return CacheStats{Hits: c.hits.Load(), Misses: c.misses.Load(), Size: c.records.Len(), TTL: c.ttl}
}

func (c *recordCache) purge() { c.records.Purge() }

// changed applies a change from the store.
func (c *recordCache) changed(ch Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ch.Namespace == "":
		c.floor = max(c.floor, ch.Generation)
		c.seenAll = max(c.seenAll, ch.Generation)
		return
	case ch.Refs == nil:
		c.floors[ch.Namespace] = max(c.floors[ch.Namespace], ch.Generation)
	}
	for _, ref := range ch.Refs {
		key := keyOf(ch.Namespace, ref)
		if e, ok := c.records.Peek(key); ok {
			e.expires = time.Time{}
			c.records.Add(key, e)
		}
	}
	c.seen[ch.Namespace] = max(c.seen[ch.Namespace], ch.Generation)
}

// generations returns the newest generation applied for a namespace, and the smallest one of valid
// records.
func (c *recordCache) generations(namespace string) (newest, floor uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.seen[namespace], c.seenAll), max(c.floors[namespace], c.floor)
}

// lookup fills records from the cache. It returns a generation that all these records have at
// least, and the indices of the missing refs.
func (c *recordCache) lookup(now time.Time, namespace string, refs []Ref, records []Record) (generation uint64, missing []int) {
	generation, floor := c.generations(namespace)
	for i, ref := range refs {
		e, ok := c.records.Get(keyOf(namespace, ref))
		if ok && now.Before(e.expires) && e.generation >= floor {
			records[i] = e.record
			continue
		}
		missing = append(missing, i)
	}
	c.hits.Add(uint64(len(refs) - len(missing))) // #nosec G115 -- missing is a part of refs
	c.misses.Add(uint64(len(missing)))
	return generation, missing
}

// keep caches records of a read at the generation read. If a change arrived since before, they are
// old, and cached as last seen only. A read that is newer than all applied changes means that a
// change was missed. Then all records cached before are old.
func (c *recordCache) keep(now time.Time, namespace string, refs []Ref, records []Record, before, read uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ttl == 0 {
		return
	}
	seen, expires := max(c.seen[namespace], c.seenAll), now.Add(c.ttl)
	switch {
	case seen != before || read < seen:
		expires = time.Time{}
	case read > seen:
		c.floors[namespace], c.seen[namespace] = read, read
	}
	for i, ref := range refs {
		key := keyOf(namespace, ref)
		if e, ok := c.records.Peek(key); !ok || e.generation <= read {
			c.records.Add(key, cachedRecord{records[i], expires, read})
		}
	}
}

// last fills records with those last seen, of any age. It returns their generation, and whether all
// were ever seen. A record that was never seen is empty.
func (c *recordCache) last(namespace string, refs []Ref, records []Record) (generation uint64, all bool) {
	generation, floor := c.generations(namespace)
	all = true
	for i, ref := range refs {
		e, ok := c.records.Peek(keyOf(namespace, ref))
		records[i], all = e.record, all && ok
		if ok && (e.expires.IsZero() || e.generation < floor) {
			generation = min(generation, e.generation)
		}
	}
	return generation, all
}

// lastPolicy returns the stored policy of a namespace as last seen.
func (c *recordCache) lastPolicy(namespace string) Policy {
	e, _ := c.records.Peek(keyOf(namespace, SystemLimitsRef()))
	return e.record.OnUnavailable
}
