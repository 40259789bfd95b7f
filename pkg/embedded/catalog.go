package embedded

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// catalog keeps entities and limits. One generation counts for every namespace.
type catalog struct {
	generation atomic.Uint64 // raised after a change is visible
	size       atomic.Int64  // number of records: most installations keep none here
	mu         sync.RWMutex
	records    map[recordKey]limiter.Record // nil = closed
	subscriber func(limiter.Change)
	closed     atomic.Bool
}

type recordKey struct {
	namespace string
	ref       limiter.Ref
}

func (c *catalog) init() { c.records = make(map[recordKey]limiter.Record) }

func (c *catalog) close() {
	c.closed.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = nil
	c.size.Store(0)
}

// Read implements limiter.Store.
func (s *Store) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	if err := contextErr(ctx); err != nil {
		return 0, err
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

// PutEntity implements limiter.Store.
func (s *Store) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	if e.ID == "" {
		return limiter.Entity{}, fmt.Errorf("%w: an entity needs an id", limiter.ErrInvalid)
	}
	ref := limiter.EntityRef(strings.Clone(e.ID))
	err := s.change(ctx, namespace, []limiter.Ref{ref}, func(get func(limiter.Ref) limiter.Record, put func(limiter.Ref, limiter.Record)) error {
		stored := limiter.Entity{CreatedAt: now}
		if r := get(ref); r.Entity != nil {
			stored = *r.Entity
		}
		if e.Version != stored.Version {
			return fmt.Errorf("%w: entity %q has version %d, not %d", limiter.ErrConflict, e.ID, stored.Version, e.Version)
		}
		if err := limiter.CheckHierarchy(e, func(id string) (limiter.Entity, bool) {
			r := get(limiter.EntityRef(id))
			if r.Entity == nil {
				return limiter.Entity{}, false
			}
			return *r.Entity, true
		}); err != nil {
			return err
		}
		e.ID, e.Name, e.Parent = ref.Entity, strings.Clone(e.Name), strings.Clone(e.Parent)
		e.Metadata = maps.Clone(e.Metadata)
		e.CreatedAt, e.Version = stored.CreatedAt, stored.Version+1
		kept := e
		put(ref, limiter.Record{Entity: &kept})
		return nil
	})
	if err != nil {
		return limiter.Entity{}, err
	}
	e.Metadata = maps.Clone(e.Metadata)
	return e, nil
}

// DeleteEntity implements limiter.Store.
func (s *Store) DeleteEntity(ctx context.Context, namespace, id string) error {
	c := &s.catalog
	refs := []limiter.Ref{limiter.EntityRef(strings.Clone(id))}
	c.mu.RLock()
	for k := range c.records {
		if k.namespace == namespace && k.ref.Kind == limiter.RefEntityLimits && k.ref.Entity == id {
			refs = append(refs, k.ref)
		}
	}
	c.mu.RUnlock()
	return s.change(ctx, namespace, refs, func(_ func(limiter.Ref) limiter.Record, put func(limiter.Ref, limiter.Record)) error {
		for _, ref := range refs {
			put(ref, limiter.Record{})
		}
		return nil
	})
}

// PutLimits implements limiter.Store.
func (s *Store) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	if ref.Kind == limiter.RefEntity || r.Entity != nil {
		return fmt.Errorf("%w: an entity is stored with PutEntity", limiter.ErrInvalid)
	}
	if ref.Kind != limiter.RefSystemLimits && r.OnUnavailable != limiter.Unset {
		return fmt.Errorf("%w: only the system's limits carry a policy", limiter.ErrInvalid)
	}
	ref.Entity, ref.Resource = strings.Clone(ref.Entity), strings.Clone(ref.Resource)
	return s.change(ctx, namespace, []limiter.Ref{ref}, func(_ func(limiter.Ref) limiter.Record, put func(limiter.Ref, limiter.Record)) error {
		put(ref, r)
		return nil
	})
}

// RaiseGeneration implements limiter.Store.
func (s *Store) RaiseGeneration(ctx context.Context) error {
	return s.change(ctx, "", nil, func(func(limiter.Ref) limiter.Record, func(limiter.Ref, limiter.Record)) error { return nil })
}

// Subscribe implements limiter.Store.
func (s *Store) Subscribe(fn func(limiter.Change)) {
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	s.catalog.subscriber = fn
}

// change runs one change of a namespace's records, alone, raises the generation
// when it returns no error, and tells the subscriber.
func (s *Store) change(ctx context.Context, namespace string, refs []limiter.Ref, fn func(get func(limiter.Ref) limiter.Record, put func(limiter.Ref, limiter.Record)) error) error {
	if err := contextErr(ctx); err != nil {
		return err
	}
	c := &s.catalog
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records == nil {
		return limiter.ErrClosed
	}
	namespace = strings.Clone(namespace)
	err := fn(
		func(ref limiter.Ref) limiter.Record { return c.records[recordKey{namespace, ref}] },
		func(ref limiter.Ref, r limiter.Record) {
			if r.Empty() {
				delete(c.records, recordKey{namespace, ref})
			} else {
				c.records[recordKey{namespace, ref}] = r
			}
			c.size.Store(int64(len(c.records)))
		})
	if err != nil {
		return err
	}
	generation := c.generation.Add(1)
	if c.subscriber != nil {
		c.subscriber(limiter.Change{Namespace: namespace, Generation: generation, Refs: refs})
	}
	return nil
}
