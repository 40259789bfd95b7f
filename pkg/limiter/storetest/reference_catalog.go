package storetest

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

type recordKey struct {
	namespace string
	ref       limiter.Ref
}

// Read implements limiter.Store.
func (r *reference) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return 0, err
	}
	for i, ref := range refs {
		records[i] = r.records[recordKey{namespace, ref}]
	}
	return r.generation, nil
}

// PutEntity implements limiter.Store.
func (r *reference) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return limiter.Entity{}, err
	}
	if e.ID == "" {
		return limiter.Entity{}, fmt.Errorf("%w: an entity needs an ID", limiter.ErrInvalid)
	}
	key := recordKey{strings.Clone(namespace), limiter.EntityRef(strings.Clone(e.ID))}
	stored := limiter.Entity{CreatedAt: now}
	if old := r.records[key].Entity; old != nil {
		stored = *old
	}
	if e.Version != stored.Version {
		return limiter.Entity{}, fmt.Errorf("%w: entity %q is at version %d, not %d", limiter.ErrConflict, e.ID, stored.Version, e.Version)
	}
	if err := r.checkChain(namespace, e); err != nil {
		return limiter.Entity{}, err
	}
	e.ID, e.Name, e.Parent = key.ref.Entity, strings.Clone(e.Name), strings.Clone(e.Parent)
	e.CreatedAt, e.Version = stored.CreatedAt, stored.Version+1
	e.Metadata = maps.Clone(e.Metadata)
	r.records[key] = limiter.Record{Entity: &e}
	r.changed(key.namespace, key.ref)
	answer := e
	answer.Metadata = maps.Clone(e.Metadata)
	return answer, nil
}

// checkChain refuses an entity that would be its own ancestor or have too many.
func (r *reference) checkChain(namespace string, e limiter.Entity) error {
	chain := []string{e.ID}
	for next := e.Parent; next != ""; {
		chain = append(chain, next)
		if next == e.ID || len(chain) > limiter.MaxLevels {
			return fmt.Errorf("%w: the chain %q is a cycle or longer than %d", limiter.ErrInvalid, chain, limiter.MaxLevels)
		}
		parent := r.records[recordKey{namespace, limiter.EntityRef(next)}].Entity
		if parent == nil {
			return nil
		}
		next = parent.Parent
	}
	return nil
}

// DeleteEntity implements limiter.Store.
func (r *reference) DeleteEntity(ctx context.Context, namespace, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return err
	}
	refs := []limiter.Ref{limiter.EntityRef(strings.Clone(id))}
	for key := range r.records {
		if key.namespace == namespace && key.ref.Kind == limiter.RefEntityLimits && key.ref.Entity == id {
			refs = append(refs, key.ref)
		}
	}
	for _, ref := range refs {
		delete(r.records, recordKey{namespace, ref})
	}
	r.changed(strings.Clone(namespace), refs...)
	return nil
}

// PutLimits implements limiter.Store.
func (r *reference) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, rec limiter.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return err
	}
	if ref.Kind == limiter.RefEntity || rec.Entity != nil {
		return fmt.Errorf("%w: an entity is not stored by PutLimits", limiter.ErrInvalid)
	}
	if ref.Kind != limiter.RefSystemLimits && rec.OnUnavailable != limiter.Unset {
		return fmt.Errorf("%w: only the system's limits carry a policy", limiter.ErrInvalid)
	}
	namespace, ref.Entity, ref.Resource = strings.Clone(namespace), strings.Clone(ref.Entity), strings.Clone(ref.Resource)
	if rec.Empty() {
		delete(r.records, recordKey{namespace, ref})
	} else {
		r.records[recordKey{namespace, ref}] = rec
	}
	r.changed(namespace, ref)
	return nil
}

// RaiseGeneration implements limiter.Store.
func (r *reference) RaiseGeneration(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return err
	}
	r.changed("")
	return nil
}

// Subscribe implements limiter.Store.
func (r *reference) Subscribe(fn func(limiter.Change)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscriber = fn
}

// changed raises the generation and tells of it; r.mu is held.
func (r *reference) changed(namespace string, refs ...limiter.Ref) {
	r.generation++
	if r.subscriber != nil {
		r.subscriber(limiter.Change{Namespace: namespace, Generation: r.generation, Refs: refs})
	}
}

// Capabilities implements limiter.Store: none.
func (r *reference) Capabilities() limiter.BackendCapabilities { return limiter.BackendCapabilities{} }

// Close implements limiter.Store.
func (r *reference) Close(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}
