package storetest

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

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
