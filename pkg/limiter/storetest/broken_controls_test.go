package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func TestReferenceControl(t *testing.T) {
	RunControl(t, func(*testing.T) ControlStore { return newReference() })
}

// TestBrokenControlsFail is TestBrokenStoresFail for RunControl.
func TestBrokenControlsFail(t *testing.T) {
	found := make(map[string]bool)
	all := slices.Concat(controlThemes()...)
	for _, b := range brokenControls() {
		for _, name := range b.foundBy {
			i := slices.IndexFunc(all, func(c controlCheck) bool { return c.name == name })
			if i < 0 {
				t.Fatalf("%s: there is no check %q", b.name, name)
			}
			run := func(t T, s limiter.Store) { all[i].run(t, s.(ControlStore)) }
			if failures := try(t, check{name: name, run: run}, b.wrap(newReference())); len(failures) == 0 {
				t.Errorf("a store that %s passes %q", b.name, name)
			}
			found[name] = true
		}
	}
	for _, c := range all {
		if !found[c.name] {
			t.Errorf("no broken store shows that %q can fail", c.name)
		}
	}
}

func brokenControls() []broken {
	return slices.Concat(brokenEdits(), brokenBudgets(), brokenLists(), brokenSwitches(), brokenNamespaces(), brokenPurges(), brokenAudits())
}

// editing is a store with another Edit.
type editing struct {
	*reference
	edit func(ctx context.Context, now time.Time, namespace string, e limiter.Edit) (limiter.Edited, error)
}

func (s editing) Edit(ctx context.Context, now time.Time, namespace string, e limiter.Edit) (limiter.Edited, error) {
	return s.edit(ctx, now, namespace, e)
}

// breakEdit breaks Edit by a function that gets the reference too.
func breakEdit(edit func(ctx context.Context, r *reference, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error)) func(*reference) limiter.Store {
	return func(r *reference) limiter.Store {
		return editing{r, func(ctx context.Context, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error) {
			return edit(ctx, r, now, ns, e)
		}}
	}
}

func brokenEdits() []broken {
	return []broken{
		{"makes the change of a dry run", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error) {
			e.DryRun = false
			return r.Edit(ctx, now, ns, e)
		}), []string{"edit/limits", "audit/nothing of no change", "disable/to and fro"}},
		{"has a version twice", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error) {
			done, err := r.Edit(ctx, now, ns, e)
			if done.After.Entity != nil {
				done.After.Entity.Version = 1
			}
			return done, err
		}), []string{"edit/entity"}},
		{"keeps the limits of a deleted entity", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error) {
			if e.Ref.Kind == limiter.RefEntity {
				e.Ref = limiter.ResourceLimitsRef(e.Ref.Entity)
			}
			return r.Edit(ctx, now, ns, e)
		}), []string{"edit/entity with limits is deleted"}},
		{"refuses nothing", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error) {
			done, err := r.Edit(ctx, now, ns, e)
			if errors.Is(err, limiter.ErrInvalid) {
				err = nil
			}
			return done, err
		}), []string{"edit/refused", "disable/refused"}},
		{"reads, and then writes", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error) {
			generation, err := r.Read(ctx, ns, nil, nil)
			if err != nil {
				return limiter.Edited{}, err
			}
			before, err := r.Get(ctx, ns, e.Ref)
			if err == nil {
				err = r.overtaken(ctx, generation, 1)
			}
			if err != nil {
				return limiter.Edited{}, err
			}
			after, err := e.Change(before)
			e.Change = func(limiter.Record) (limiter.Record, error) { return after, err }
			return r.Edit(ctx, now, ns, e)
		}), []string{"edit/one after the other"}},
		{"does not record its callers", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error) {
			return r.Edit(limiter.WithPrincipal(ctx, "root"), now, ns, e)
		}), []string{"audit/every change", "disable/audited"}},
	}
}

// oneKind lists entities and limits of any filter.
type oneKind struct{ *reference }

func (s oneKind) ListEntities(ctx context.Context, namespace string, _ limiter.EntityFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return s.reference.ListEntities(ctx, namespace, limiter.EntityFilter{}, p)
}

func (s oneKind) ListLimits(ctx context.Context, namespace string, _ limiter.LimitsFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return s.reference.ListLimits(ctx, namespace, limiter.LimitsFilter{}, p)
}

// anyPage starts over for text that is no cursor.
type anyPage struct{ *reference }

func (s anyPage) ListEntities(ctx context.Context, namespace string, f limiter.EntityFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	page, err := s.reference.ListEntities(ctx, namespace, f, p)
	if err != nil {
		return s.reference.ListEntities(ctx, namespace, f, limiter.Page{})
	}
	return page, err
}

// registers brings a namespace into use by reading a record of it.
type registers struct{ *reference }

func (s registers) Get(ctx context.Context, namespace string, ref limiter.Ref) (limiter.Record, error) {
	s.mu.Lock()
	s.buckets[limiter.BucketKey{Namespace: namespace}] = &refBucket{}
	s.mu.Unlock()
	return s.reference.Get(ctx, namespace, ref)
}

func brokenLists() []broken {
	return []broken{
		{"brings a namespace into use by a read", func(r *reference) limiter.Store { return registers{r} }, []string{"directory/namespaces"}},
		{"ignores filters", func(r *reference) limiter.Store { return oneKind{r} }, []string{"directory/entities", "directory/limits"}},
		{"takes any cursor", func(r *reference) limiter.Store { return anyPage{r} }, []string{"directory/pages that cannot be"}},
	}
}

// hides reads nothing as disabled.
type hides struct{ *reference }

func (s hides) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	generation, err := s.reference.Read(ctx, namespace, refs, records)
	for i := range records {
		records[i].Disabled = false
	}
	return generation, err
}

// forgets enables each subject that PutLimits or DeleteEntity changes.
type forgets struct{ *reference }

func (s forgets) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	s.enable(namespace, ref)
	return s.reference.PutLimits(ctx, namespace, ref, r)
}

func (s forgets) DeleteEntity(ctx context.Context, namespace, id string) error {
	s.enable(namespace, limiter.EntityRef(id))
	return s.reference.DeleteEntity(ctx, namespace, id)
}

func (s forgets) enable(namespace string, ref limiter.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := recordKey{namespace, ref}
	r := s.records[key]
	r.Disabled = false
	s.records[key] = r
}

// listsStored lists only those disabled subjects that are stored.
type listsStored struct{ *reference }

func (s listsStored) ListDisabled(ctx context.Context, namespace string, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return listOf(ctx, s.reference, namespace, p, func(r limiter.Stored) (limiter.Stored, bool) {
		return r, r.Record.Disabled && r.Record.Stored()
	})
}

// listsBare lists disabled subjects without their disabling.
type listsBare struct{ *reference }

func (s listsBare) ListDisabled(ctx context.Context, namespace string, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return listOf(ctx, s.reference, namespace, p, func(r limiter.Stored) (limiter.Stored, bool) {
		r.Record.Disabling = nil
		return r, r.Record.Disabled
	})
}

func brokenSwitches() []broken {
	return []broken{
		{"lists disabled subjects without their disabling", func(r *reference) limiter.Store { return listsBare{r} }, []string{"disable/recorded"}},
		{"has the last caller that disables, not the first", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error) {
			if e.Switch == limiter.Disable {
				if _, err := r.Edit(ctx, now, ns, limiter.Edit{Ref: e.Ref, Switch: limiter.Enable}); err != nil {
					return limiter.Edited{}, err
				}
			}
			return r.Edit(ctx, now, ns, e)
		}), []string{"disable/recorded"}},
		{"hides disabled subjects from decisions", func(r *reference) limiter.Store { return hides{r} }, []string{"disable/decisions", "disable/to and fro"}},
		{"enables a deleted subject", func(r *reference) limiter.Store { return forgets{r} }, []string{"disable/outlives changes"}},
		{"lists stored subjects alone", func(r *reference) limiter.Store { return listsStored{r} }, []string{"disable/listed"}},
		{"counts a switch that changes nothing", breakEdit(func(ctx context.Context, r *reference, now time.Time, ns string, e limiter.Edit) (limiter.Edited, error) {
			return r.amend(ctx, now, ns, e, !e.DryRun)
		}), []string{"disable/to and fro", "disable/audited", "audit/nothing of no change"}},
	}
}
