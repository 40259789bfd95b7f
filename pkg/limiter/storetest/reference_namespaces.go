package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ListNamespaces implements limiter.Directory.
func (r *reference) ListNamespaces(ctx context.Context, f limiter.NamespaceFilter, p limiter.Page) (limiter.PageOf[limiter.Namespace], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return limiter.PageOf[limiter.Namespace]{}, err
	}
	var all []limiter.Namespace
	for _, name := range slices.Sorted(maps.Keys(r.used(r.buckets))) {
		if ns := r.namespace(name); f.Selects(ns) {
			all = append(all, ns)
		}
	}
	return pageOf(all, p)
}

// GetNamespace implements limiter.Directory.
func (r *reference) GetNamespace(ctx context.Context, name string) (limiter.Namespace, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return limiter.Namespace{}, err
	}
	if !r.used(r.buckets)[name] {
		return limiter.Namespace{}, fmt.Errorf("%w: namespace %q", limiter.ErrNotFound, name)
	}
	return r.namespace(name), nil
}

// Purge implements limiter.Purger.
func (r *reference) Purge(ctx context.Context, now time.Time, namespace string, progress func(int)) error {
	r.purging.Lock() // otherwise it could end a purge that began after it
	defer r.purging.Unlock()
	if _, err := r.Edit(ctx, now, namespace, limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.BeginPurge}); err != nil {
		return err
	}
	for deleted := 1; r.deleteOne(namespace); deleted++ {
		if progress != nil {
			progress(deleted)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", limiter.ErrUnavailable, ctx.Err())
		}
	}
	_, err := r.Edit(ctx, now, namespace, limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.EndPurge})
	return err
}

// deleteOne deletes a record, a bucket or an event of a namespace that is being purged, and
// reports false where there is none.
func (r *reference) deleteOne(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.namespace(namespace).State == limiter.NamespacePurging && r.deleteFirst(namespace)
}

// deleteFirst is deleteOne of a namespace in any state. r.mu must be locked.
func (r *reference) deleteFirst(namespace string) bool {
	for key := range r.records {
		if key.namespace == namespace && key.ref.Kind != limiter.RefSystemLimits {
			delete(r.records, key)
			return true
		}
	}
	for key := range r.buckets {
		if key.Namespace == namespace {
			delete(r.buckets, key)
			return true
		}
	}
	for i, e := range r.events {
		if e.namespace == namespace && !limiter.AboutNamespace(e.Action) {
			r.events = slices.Delete(r.events, i, i+1)
			return true
		}
	}
	return false
}

// noOrphans is the part of limiter.Purger of a store without IDs.
type noOrphans struct{}

// ListOrphans implements limiter.Purger: there are no IDs.
func (noOrphans) ListOrphans(_ context.Context, p limiter.Page) (limiter.PageOf[limiter.Namespace], error) {
	return pageOf[limiter.Namespace](nil, p)
}

// PurgeOrphan implements limiter.Purger.
func (noOrphans) PurgeOrphan(_ context.Context, id string, _ func(int)) error {
	return fmt.Errorf("%w: id %q", limiter.ErrNotFound, id)
}
