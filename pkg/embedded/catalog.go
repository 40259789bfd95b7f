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
	changing   sync.Mutex    // held for a whole change, also while it is written
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
	err := s.change(ctx, namespace, []limiter.Ref{ref}, "entity.put", func(get func(limiter.Ref) limiter.Record, put func(limiter.Ref, limiter.Record)) error {
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
	return s.change(ctx, namespace, refs, "entity.delete", func(_ func(limiter.Ref) limiter.Record, put func(limiter.Ref, limiter.Record)) error {
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
	action := "limits.put"
	if r.Empty() {
		action = "limits.delete"
	}
	return s.change(ctx, namespace, []limiter.Ref{ref}, action, func(_ func(limiter.Ref) limiter.Record, put func(limiter.Ref, limiter.Record)) error {
		put(ref, r)
		return nil
	})
}

// RaiseGeneration implements limiter.Store.
func (s *Store) RaiseGeneration(ctx context.Context) error {
	return s.change(ctx, "", nil, "", func(func(limiter.Ref) limiter.Record, func(limiter.Ref, limiter.Record)) error { return nil })
}

// Subscribe implements limiter.Store.
func (s *Store) Subscribe(fn func(limiter.Change)) {
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	s.catalog.subscriber = fn
}

// change runs one change of a namespace's records, alone, raises the generation
// when it returns no error, and tells the subscriber. With a file the change, its
// audit event and the generation are in it before anybody sees the change.
func (s *Store) change(ctx context.Context, namespace string, refs []limiter.Ref, action string, fn func(get func(limiter.Ref) limiter.Record, put func(limiter.Ref, limiter.Record)) error) error {
	if err := contextErr(ctx); err != nil {
		return err
	}
	c := &s.catalog
	c.changing.Lock()
	defer c.changing.Unlock()
	if c.closed.Load() {
		return limiter.ErrClosed
	}
	edit := edit{namespace: strings.Clone(namespace), action: action, refs: refs, generation: c.generation.Load() + 1}
	err := fn(
		func(ref limiter.Ref) limiter.Record { return c.get(recordKey{edit.namespace, ref}) },
		func(ref limiter.Ref, r limiter.Record) {
			edit.puts = append(edit.puts, put{recordKey{edit.namespace, ref}, r})
		})
	if err != nil {
		return err
	}
	if s.disk != nil {
		if err := s.disk.write(edit.changes(s.cfg.Now())...).wait(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return c.apply(&edit)
}

// edit is a change on its way.
type edit struct {
	namespace  string
	action     string // "" = none that is audited
	refs       []limiter.Ref
	generation uint64
	puts       []put
}

type put struct {
	key    recordKey
	record limiter.Record
}

func (c *catalog) get(k recordKey) limiter.Record {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.records[k]
}

// apply makes a change visible.
func (c *catalog) apply(e *edit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records == nil {
		return limiter.ErrClosed
	}
	for _, p := range e.puts {
		if p.record.Empty() {
			delete(c.records, p.key)
		} else {
			c.records[p.key] = p.record
		}
	}
	c.size.Store(int64(len(c.records)))
	c.generation.Store(e.generation)
	if c.subscriber != nil {
		c.subscriber(limiter.Change{Namespace: e.namespace, Generation: e.generation, Refs: e.refs})
	}
	return nil
}
