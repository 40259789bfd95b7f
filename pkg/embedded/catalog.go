package embedded

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// catalog keeps entities and limits. One generation counts for every namespace.
type catalog struct {
	generation atomic.Uint64 // raised after a change is visible
	size       atomic.Int64  // number of records: most installations keep none here
	changing   sync.Mutex    // held for a whole change, also while it is written
	mu         sync.RWMutex
	records    map[recordKey]limiter.Record // nil = closed
	names      map[string]bool              // of namespaces that were changed; not asked where there is a file
	subscriber func(limiter.Change)
	closed     atomic.Bool
}

type recordKey struct {
	namespace string
	ref       limiter.Ref
}

func (c *catalog) init() {
	c.records, c.names = make(map[recordKey]limiter.Record), make(map[string]bool)
}

func (c *catalog) close() {
	c.closed.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = nil
	c.size.Store(0)
}

func (s *Store) usable(ctx context.Context) error {
	if err := contextErr(ctx); err != nil {
		return err
	}
	if s.catalog.closed.Load() {
		return limiter.ErrClosed
	}
	return nil
}

// Read implements limiter.Store.
func (s *Store) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	if ctx.Err() != nil {
		return 0, contextErr(ctx)
	}
	c := &s.catalog
	if c.closed.Load() {
		return 0, limiter.ErrClosed
	}
	generation := c.generation.Load() // before the records
	if c.size.Load() == 0 {
		clear(records)
		return generation, nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i, ref := range refs {
		records[i] = c.records[recordKey{namespace, ref}]
	}
	return generation, nil
}

// Bare reports whether there are no records in any namespace, and the generation as it
// was before.
func (s *Store) Bare() (generation uint64, ok bool) {
	c := &s.catalog
	generation = c.generation.Load()
	return generation, c.size.Load() == 0 && !c.closed.Load()
}

// RaiseGeneration implements limiter.Store.
func (s *Store) RaiseGeneration(ctx context.Context) error {
	return s.change(ctx, "", func(*edit) error { return nil })
}

// Subscribe implements limiter.Store.
func (s *Store) Subscribe(fn func(limiter.Change)) {
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	s.catalog.subscriber = fn
}

// change runs one change of a namespace's records, alone, raises the generation
// when it returns no error, and tells the subscriber. With a file the change, its
// audit event and the generation are in it before anybody sees the change; what was
// given to the file is not called back, so that it has and the memory shows the same.
func (s *Store) change(ctx context.Context, namespace string, fn func(*edit) error) error {
	if err := contextErr(ctx); err != nil {
		return err
	}
	c := &s.catalog
	c.changing.Lock()
	defer c.changing.Unlock()
	if c.closed.Load() {
		return limiter.ErrClosed
	}
	e := edit{catalog: c, namespace: strings.Clone(namespace), generation: c.generation.Load() + 1, principal: strings.Clone(limiter.PrincipalFrom(ctx))}
	if err := fn(&e); err != nil {
		return err
	}
	if s.disk != nil {
		if err := s.disk.write(context.WithoutCancel(ctx), e.changes(s.cfg.Now())...); err != nil {
			return err
		}
	}
	if !c.apply(&e) && s.disk == nil {
		return limiter.ErrClosed
	}
	return nil
}

// refs returns which records of a namespace fn selects.
func (c *catalog) refs(namespace string, fn func(limiter.Ref, limiter.Record) bool) []limiter.Ref {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var found []limiter.Ref
	for k, r := range c.records {
		if k.namespace == namespace && fn(k.ref, r) {
			found = append(found, k.ref)
		}
	}
	return found
}

// apply makes a change visible, unless the store is closed.
func (c *catalog) apply(e *edit) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records == nil {
		return false
	}
	var refs []limiter.Ref
	for _, p := range e.puts {
		if p.record.Empty() {
			delete(c.records, p.key)
		} else {
			c.records[p.key] = p.record
		}
		refs = append(refs, p.key.ref)
	}
	if e.namespace != "" {
		c.names[e.namespace] = true
	}
	c.size.Store(int64(len(c.records)))
	c.generation.Store(e.generation)
	if c.subscriber != nil {
		c.subscriber(limiter.Change{Namespace: e.namespace, Generation: e.generation, Refs: refs})
	}
	return true
}
