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

// PutEntity implements limiter.Store.
func (s *Store) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	if e.ID == "" {
		return limiter.Entity{}, fmt.Errorf("%w: an entity needs an id", limiter.ErrInvalid)
	}
	ref := limiter.EntityRef(strings.Clone(e.ID))
	err := s.change(ctx, namespace, func(c *edit) error {
		stored := limiter.Entity{CreatedAt: now}
		if r := c.get(ref); r.Entity != nil {
			stored = *r.Entity
		}
		if e.Version != stored.Version {
			return fmt.Errorf("%w: entity %q has version %d, not %d", limiter.ErrConflict, e.ID, stored.Version, e.Version)
		}
		if err := limiter.CheckHierarchy(e, func(id string) (limiter.Entity, bool) {
			r := c.get(limiter.EntityRef(id))
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
		r := limiter.Record{Entity: &kept}
		c.put(ref, r)
		c.say(limiter.ActionPutEntity, ref, r.Detail())
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
	return s.change(ctx, namespace, func(c *edit) error {
		ref := limiter.EntityRef(strings.Clone(id))
		c.put(ref, limiter.Record{})
		limits := s.catalog.refs(namespace, func(ref limiter.Ref, _ limiter.Record) bool {
			return ref.Kind == limiter.RefEntityLimits && ref.Entity == id
		})
		for _, ref := range limits {
			c.put(ref, limiter.Record{})
		}
		c.say(limiter.ActionDeleteEntity, ref, fmt.Sprintf("the entity and %d limits", len(limits)))
		return nil
	})
}

// PutLimits implements limiter.Store.
func (s *Store) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	if ref.Kind == limiter.RefEntity || r.Entity != nil {
		return fmt.Errorf("%w: an entity is stored with PutEntity", limiter.ErrInvalid)
	}
	if ref.Kind > limiter.RefSystemLimits || r.OnUnavailable > limiter.Local {
		return fmt.Errorf("%w: there is no record of kind %d, or no policy %d", limiter.ErrInvalid, ref.Kind, r.OnUnavailable)
	}
	if ref.Kind != limiter.RefSystemLimits && r.OnUnavailable != limiter.Unset {
		return fmt.Errorf("%w: only the system's limits carry a policy", limiter.ErrInvalid)
	}
	ref.Entity, ref.Resource = strings.Clone(ref.Entity), strings.Clone(ref.Resource)
	return s.change(ctx, namespace, func(c *edit) error {
		c.put(ref, r)
		if r.Empty() {
			c.say(limiter.ActionDeleteLimits, ref, "")
		} else {
			c.say(limiter.ActionPutLimits, ref, r.Detail())
		}
		return nil
	})
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
	e := edit{catalog: c, namespace: strings.Clone(namespace), generation: c.generation.Load() + 1}
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

// edit is a change on its way.
type edit struct {
	catalog    *catalog
	namespace  string
	generation uint64
	puts       []put

	action  string // "" = none that is audited
	subject limiter.Ref
	detail  string
}

type put struct {
	key    recordKey
	record limiter.Record
}

func (e *edit) get(ref limiter.Ref) limiter.Record {
	e.catalog.mu.RLock()
	defer e.catalog.mu.RUnlock()
	return e.catalog.records[recordKey{e.namespace, ref}]
}

// put stores a record, or deletes it if it is empty.
func (e *edit) put(ref limiter.Ref, r limiter.Record) {
	e.puts = append(e.puts, put{recordKey{e.namespace, ref}, r})
}

// say has the change audited.
func (e *edit) say(action string, subject limiter.Ref, detail string) {
	e.action, e.subject, e.detail = action, subject, detail
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
	c.size.Store(int64(len(c.records)))
	c.generation.Store(e.generation)
	if c.subscriber != nil {
		c.subscriber(limiter.Change{Namespace: e.namespace, Generation: e.generation, Refs: refs})
	}
	return true
}
