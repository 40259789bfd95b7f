package storetest

import (
	"context"
	"fmt"
	"maps"
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
	done, err := r.amend(ctx, now, namespace, limiter.Edit{Ref: limiter.EntityRef(e.ID), Change: limiter.ReplaceEntity(e)}, true)
	if err != nil {
		return limiter.Entity{}, err
	}
	answer := *done.After.Entity
	answer.Metadata = maps.Clone(answer.Metadata)
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
	_, err := r.amend(ctx, time.Time{}, namespace, limiter.Edit{Ref: limiter.EntityRef(id), Change: to(limiter.Record{})}, true)
	return err
}

// PutLimits implements limiter.Store.
func (r *reference) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, rec limiter.Record) error {
	if ref.Kind == limiter.RefEntity {
		return fmt.Errorf("%w: an entity is not stored by PutLimits", limiter.ErrInvalid)
	}
	_, err := r.amend(ctx, time.Time{}, namespace, limiter.Edit{Ref: ref, Change: to(rec)}, true)
	return err
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

// changed raises the generation and calls the subscriber; r.mu is locked.
func (r *reference) changed(namespace string, refs ...limiter.Ref) {
	r.generation++
	if r.subscriber != nil {
		r.subscriber(limiter.Change{Namespace: namespace, Generation: r.generation, Refs: refs})
	}
}

// Capabilities implements limiter.Store.
func (r *reference) Capabilities() limiter.BackendCapabilities {
	return limiter.BackendCapabilities{AuditLogging: true}
}

// Close implements limiter.Store.
func (r *reference) Close(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}
