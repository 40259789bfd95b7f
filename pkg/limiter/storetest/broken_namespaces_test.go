package storetest

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// active reads every namespace as active.
type active struct{ *reference }

func (s active) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	generation, err := s.reference.Read(ctx, namespace, refs, records)
	for i := range records {
		records[i].State = limiter.NamespaceActive
	}
	return generation, err
}

// listsAll lists namespaces of any filter.
type listsAll struct{ *reference }

func (s listsAll) ListNamespaces(ctx context.Context, _ limiter.NamespaceFilter, p limiter.Page) (limiter.PageOf[limiter.Namespace], error) {
	return s.reference.ListNamespaces(ctx, limiter.NamespaceFilter{}, p)
}

// forgiving changes limits in namespaces of any state.
type forgiving struct{ *reference }

func (s forgiving) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	err := s.reference.PutLimits(ctx, namespace, ref, r)
	if errors.Is(err, limiter.ErrState) {
		err = nil
	}
	return err
}

func brokenNamespaces() []broken {
	type edit = limiter.Edit
	return []broken{
		{"hides from decisions that a namespace is deleted", func(r *reference) limiter.Store { return active{r} }, []string{"namespaces/decisions", "namespaces/recovered"}},
		{"lists every namespace", func(r *reference) limiter.Store { return listsAll{r} }, []string{"namespaces/to and fro"}},
		{"changes a deleted namespace", func(r *reference) limiter.Store { return forgiving{r} }, []string{"namespaces/changes refused"}},
		{"creates a namespace by a read", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e edit) (limiter.Edited, error) {
			r.mu.Lock()
			r.names[ns] = true
			r.mu.Unlock()
			return r.Edit(ctx, now, ns, e)
		}), []string{"namespaces/never in use"}},
		{"deletes for good", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e edit) (limiter.Edited, error) {
			done, err := r.Edit(ctx, now, ns, e)
			for e.Switch == limiter.DeleteNamespace && err == nil && r.deleteAny(ns) {
				continue
			}
			return done, err
		}), []string{"namespaces/recovered"}},
		{"counts a state that changes nothing", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e edit) (limiter.Edited, error) {
			return r.amend(ctx, now, ns, e, e.Switch.OfNamespace() && !e.DryRun)
		}), []string{"namespaces/audited"}},
		{"makes a change of state that is dry", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e edit) (limiter.Edited, error) {
			e.DryRun = e.DryRun && !e.Switch.OfNamespace()
			return r.Edit(ctx, now, ns, e)
		}), []string{"namespaces/to and fro", "namespaces/never in use"}},
	}
}

// deleteAny is deleteOne of a namespace in any state.
func (r *reference) deleteAny(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deleteFirst(namespace)
}

// purging is a store with another Purge.
type purging struct {
	*reference
	purge func(ctx context.Context, now time.Time, namespace string, progress func(int)) error
}

func (s purging) Purge(ctx context.Context, now time.Time, namespace string, progress func(int)) error {
	return s.purge(ctx, now, namespace, progress)
}

// breakPurge breaks Purge by a function that gets the reference too.
func breakPurge(purge func(ctx context.Context, r *reference, now time.Time, ns string, progress func(int)) error) func(*reference) limiter.Store {
	return func(r *reference) limiter.Store {
		return purging{r, func(ctx context.Context, now time.Time, ns string, progress func(int)) error {
			return purge(ctx, r, now, ns, progress)
		}}
	}
}

// set sets the state of a namespace in any state.
func (r *reference) set(namespace string, to limiter.NamespaceState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := recordKey{namespace, limiter.SystemLimitsRef()}
	record := r.records[key]
	record.State = to
	r.records[key] = record
}

// adopts lists an ID that no namespace has, and purges any.
type adopts struct{ *reference }

func (s adopts) ListOrphans(context.Context, limiter.Page) (limiter.PageOf[limiter.Namespace], error) {
	return limiter.PageOf[limiter.Namespace]{Items: []limiter.Namespace{{ID: "AAAAAAAAAAA"}}}, nil
}

func brokenPurges() []broken {
	return []broken{
		{"keeps buckets", breakPurge(func(ctx context.Context, r *reference, now time.Time, ns string, progress func(int)) error {
			kept := make(map[limiter.BucketKey]*refBucket)
			r.mu.Lock()
			for key, b := range r.buckets {
				if key.Namespace == ns {
					kept[key] = b
				}
			}
			r.mu.Unlock()
			err := r.Purge(ctx, now, ns, progress)
			r.mu.Lock()
			defer r.mu.Unlock()
			maps.Copy(r.buckets, kept)
			return err
		}), []string{"purge/everything goes", "purge/broken off"}},
		{"forgets generations", breakPurge(func(ctx context.Context, r *reference, now time.Time, ns string, progress func(int)) error {
			err := r.Purge(ctx, now, ns, progress)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.generation = 0
			return err
		}), []string{"purge/everything goes", "purge/open reservations"}},
		{"purges an active namespace", breakPurge(func(ctx context.Context, r *reference, now time.Time, ns string, progress func(int)) error {
			r.set(ns, limiter.NamespaceDeleted)
			return r.Purge(ctx, now, ns, progress)
		}), []string{"purge/of an active namespace"}},
		{"gives up a purge that is broken off", breakPurge(func(ctx context.Context, r *reference, now time.Time, ns string, progress func(int)) error {
			err := r.Purge(ctx, now, ns, progress)
			if err != nil {
				r.set(ns, limiter.NamespaceDeleted)
			}
			return err
		}), []string{"purge/broken off"}},
		{"goes on with a purge that another has ended", breakPurge(func(ctx context.Context, r *reference, now time.Time, ns string, progress func(int)) error {
			err := r.Purge(ctx, now, ns, progress)
			for err == nil && ctx.Err() == nil { // it does not see the end
				r.deleteAny(ns)
			}
			return err
		}), []string{"purge/beside another"}},
		{"has orphans", func(r *reference) limiter.Store { return adopts{r} }, []string{"purge/orphans"}},
	}
}
