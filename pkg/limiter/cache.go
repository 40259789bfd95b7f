package limiter

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ratelimit/ratelimit/internal/shortname"
)

// CacheStats reports on the cache of catalog records.
type CacheStats struct {
	Hits   uint64        // records that were there
	Misses uint64        // records that had to be read
	Size   int           // records held, also those that say "none"
	TTL    time.Duration // how long a record is believed
}

// recordCache keeps records of a remote store's catalog, also that there is
// none. It only saves reads: losing an entry costs nothing else.
//
// For each namespace it knows the newest generation of which it has applied the
// change. What it answers is of at least that generation, because a change drops
// what it names before it raises the number, and because a read that began before
// a change is not kept after it.
type recordCache struct {
	ttl          time.Duration
	hits, misses atomic.Uint64

	mu      sync.Mutex
	records *lru.Cache[cacheKey, cachedRecord]
	seen    map[string]uint64 // by namespace
	seenAll uint64            // of changes to all namespaces
}

type cacheKey struct {
	namespace string
	ref       Ref
}

// keyOf returns the key of a record; long names are short in it.
func keyOf(namespace string, ref Ref) cacheKey {
	ref.Entity, ref.Resource = shortname.Of(ref.Entity), shortname.Of(ref.Resource)
	return cacheKey{namespace, ref}
}

type cachedRecord struct {
	record     Record
	expires    time.Time
	generation uint64 // it was read at
}

// newRecordCache returns a cache; a ttl below 0 keeps nothing.
func newRecordCache(ttl time.Duration, size int) *recordCache {
	if ttl == 0 {
		ttl = DefaultCacheTTL
	}
	if size <= 0 {
		size = DefaultCacheSize
	}
	c := &recordCache{ttl: max(ttl, 0), seen: make(map[string]uint64)}
	c.records, _ = lru.New[cacheKey, cachedRecord](size) // fails for a size below 1 only
	return c
}

func (c *recordCache) stats() CacheStats {
	return CacheStats{Hits: c.hits.Load(), Misses: c.misses.Load(), Size: c.records.Len(), TTL: c.ttl}
}

func (c *recordCache) purge() { c.records.Purge() }

// changed applies a change that the store tells of.
func (c *recordCache) changed(ch Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch.Namespace == "" {
		c.records.Purge()
		c.seenAll = max(c.seenAll, ch.Generation)
		return
	}
	if ch.Refs == nil {
		c.drop(ch.Namespace)
	}
	for _, ref := range ch.Refs {
		c.records.Remove(keyOf(ch.Namespace, ref))
	}
	c.seen[ch.Namespace] = max(c.seen[ch.Namespace], ch.Generation)
}

// drop forgets a namespace's records.
func (c *recordCache) drop(namespace string) {
	for _, k := range c.records.Keys() {
		if k.namespace == namespace {
			c.records.Remove(k)
		}
	}
}

// generation returns the newest generation applied for a namespace.
func (c *recordCache) generation(namespace string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.seen[namespace], c.seenAll)
}

// lookup fills records with what is cached and returns the generation that
// everything it answers is at least of, and the refs that are missing, by index.
func (c *recordCache) lookup(now time.Time, namespace string, refs []Ref, records []Record) (generation uint64, missing []int) {
	generation = c.generation(namespace)
	for i, ref := range refs {
		if e, ok := c.records.Get(keyOf(namespace, ref)); ok && now.Before(e.expires) {
			records[i] = e.record
			continue
		}
		missing = append(missing, i)
	}
	c.hits.Add(uint64(len(refs) - len(missing))) // #nosec G115 -- missing is a part of refs
	c.misses.Add(uint64(len(missing)))
	return generation, missing
}

// keep caches what was read at the generation read, unless a change came in
// since before. A read that is newer than every change the cache knows of means
// that one was missed: then what was cached before is forgotten.
func (c *recordCache) keep(now time.Time, namespace string, refs []Ref, records []Record, before, read uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := max(c.seen[namespace], c.seenAll)
	if seen != before || read < seen || c.ttl == 0 {
		return
	}
	if read > seen {
		c.drop(namespace)
		c.seen[namespace] = read
	}
	for i, ref := range refs {
		c.records.Add(keyOf(namespace, ref), cachedRecord{records[i], now.Add(c.ttl), read})
	}
}

// last fills records with what was last seen, however long ago.
func (c *recordCache) last(namespace string, refs []Ref, records []Record) {
	for i, ref := range refs {
		e, _ := c.records.Peek(keyOf(namespace, ref))
		records[i] = e.record
	}
}

// lastPolicy returns the stored policy of a namespace as last seen.
func (c *recordCache) lastPolicy(namespace string) Policy {
	e, _ := c.records.Peek(keyOf(namespace, SystemLimitsRef()))
	return e.record.OnUnavailable
}

// read reads the records of sc.refs, through the cache where the store is remote.
func (l *Limiter) read(ctx context.Context, now time.Time, namespace string, sc *scratch) (uint64, error) {
	switch {
	case sc.offline && l.cache != nil:
		// The store cannot say its generation. The fallback's buckets are asked by this
		// limiter only, so what it knows to have changed puts their limits in order.
		generation := l.uses.Load() + l.cache.generation(namespace)
		l.cache.last(namespace, sc.refs, sc.records)
		return generation, nil
	case l.cache == nil:
		return l.store.Read(ctx, namespace, sc.refs, sc.records)
	}
	generation, missing := l.cache.lookup(now, namespace, sc.refs, sc.records)
	if len(missing) == 0 {
		return generation, nil
	}
	return l.readMissing(ctx, now, namespace, sc, generation, missing)
}

// readMissing reads from the store what the cache did not have.
func (l *Limiter) readMissing(ctx context.Context, now time.Time, namespace string, sc *scratch, generation uint64, missing []int) (uint64, error) {
	refs := make([]Ref, len(missing))
	for i, m := range missing {
		refs[i] = sc.refs[m].clone()
	}
	records := make([]Record, len(refs))
	read, err := l.store.Read(ctx, namespace, refs, records)
	if err != nil {
		return 0, err
	}
	l.cache.keep(now, namespace, refs, records, generation, read)
	for i, m := range missing {
		sc.records[m] = records[i]
	}
	if len(missing) == len(sc.refs) {
		return read, nil // nothing older is among them
	}
	return generation, nil
}

// clone returns a ref that shares no memory with a request.
func (r Ref) clone() Ref {
	r.Entity, r.Resource = strings.Clone(r.Entity), strings.Clone(r.Resource)
	return r
}
