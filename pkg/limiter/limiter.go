package limiter

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Limiter decides requests. It is safe for concurrent use. Create it with [New].
type Limiter struct {
	store    Store
	local    bool         // the store is memory of this process
	empty    emptyCatalog // nil where the store is not local, or does not implement it
	fallback Store
	timeout  time.Duration
	use      sync.Mutex    // locked while the snapshot is replaced
	uses     atomic.Uint64 // how often it was replaced
	snapshot atomic.Pointer[Snapshot]
	cache    *recordCache // nil for a local store
	reads    *reads       // nil for a local store
	denials  *denyCache   // nil for a local store
	shares   *shareCache
	merges   merges
}

// emptyCatalog is a local store that can report at once, with its generation, whether it has no
// entities and no limits. Most stores of one node have none. Then no decision has to read them.
type emptyCatalog interface {
	EmptyCatalog() (generation uint64, empty bool)
}

// New returns a limiter over a store. It fails with [ErrInvalid] when there is none.
func New(cfg Config) (*Limiter, error) {
	if cfg.Store == nil {
		return nil, fmt.Errorf("%w: a limiter needs a store", ErrInvalid)
	}
	cfg.Timeout = cmp.Or(max(cfg.Timeout, 0), DefaultTimeout)
	l := &Limiter{
		store:    cfg.Store,
		local:    cfg.Store.Capabilities().Local,
		fallback: cfg.Fallback,
		timeout:  cfg.Timeout,
		shares:   newShareCache(),
	}
	l.snapshot.Store(new(Snapshot))
	if l.local {
		l.empty, _ = cfg.Store.(emptyCatalog)
	} else {
		l.cache = newRecordCache(cfg.CacheTTL, cfg.CacheSize)
		l.reads = newReads(cfg.Store, l.cache)
		l.denials = newDenyCache(cfg.DenyCacheSize, cfg.Timeout)
		l.store.Subscribe(l.cache.changed)
	}
	return l, nil
}

// CacheStats reports on the cache of records. It is zero for a local store,
// whose records are not cached.
func (l *Limiter) CacheStats() CacheStats {
	if l.cache == nil {
		return CacheStats{}
	}
	return l.cache.stats()
}

// InvalidateCache drops every cached record and denial, and the results of reads under way.
func (l *Limiter) InvalidateCache() {
	if l.cache != nil {
		l.reads.forget()
		l.cache.purge()
	}
	if l.denials != nil {
		l.denials.purge()
	}
}

// Close ends the reads of the limiter in the background, and waits for them; call it before the
// store is closed. A decision that has to read then fails with [ErrClosed]. A limiter that is not
// closed reads nothing for longer than a second after its last call.
func (l *Limiter) Close() {
	if l.reads != nil {
		l.reads.close()
	}
}

// learn caches the store's answers to ops, for the next request.
func (l *Limiter) learn(now time.Time, ops []Op) {
	if l.denials != nil {
		l.denials.learn(now, ops)
	}
}
