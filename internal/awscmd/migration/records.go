package migration

import (
	"context"
	"fmt"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// records writes the records of a namespace.
func (r *run) records(ctx context.Context, ns *Namespace) error {
	empty, err := r.empty(ctx, ns.Name)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(ns.Records, batch) {
		before := make([]limiter.Record, len(chunk))
		if !empty {
			if err := r.read(ctx, ns.Name, chunk, before); err != nil {
				return err
			}
		}
		for i, record := range chunk {
			if err := r.record(ctx, ns.Name, record, before[i]); err != nil {
				return fmt.Errorf("%s: %w", Subject(record.Ref), err)
			}
		}
		r.told(len(chunk))
	}
	return nil
}

// empty reports, in a dry run, whether the store has no records of a namespace. To read them
// would register it.
func (r *run) empty(ctx context.Context, namespace string) (bool, error) {
	if !r.o.DryRun {
		return false, nil
	}
	one := limiter.Page{Size: 1}
	for {
		entities, err := r.to.ListEntities(ctx, namespace, limiter.EntityFilter{}, one)
		if err != nil || len(entities.Items) > 0 {
			return false, err
		}
		one.After = entities.Next
		if one.After == "" {
			break
		}
	}
	for {
		limits, err := r.to.ListLimits(ctx, namespace, limiter.LimitsFilter{}, one)
		if err != nil || len(limits.Items) > 0 {
			return false, err
		}
		one.After = limits.Next
		if one.After == "" {
			return true, nil
		}
	}
}

func (r *run) read(ctx context.Context, namespace string, chunk []limiter.Stored, into []limiter.Record) error {
	refs := make([]limiter.Ref, len(chunk))
	for i := range chunk {
		refs[i] = chunk[i].Ref
	}
	_, err := r.to.Read(ctx, namespace, refs, into)
	return err
}

// record writes one record, of which before was read. Whether the subject is disabled stays as
// it is, and makes no difference.
func (r *run) record(ctx context.Context, namespace string, want limiter.Stored, before limiter.Record) error {
	before.Disabled, before.Disabling = false, nil
	if !r.o.DryRun && (before.Empty() || r.o.Overwrite && !before.Equal(want.Record)) {
		done, err := r.to.Edit(ctx, r.o.Now(), namespace, limiter.Edit{Ref: want.Ref, Change: func(stored limiter.Record) (limiter.Record, error) {
			if !stored.Stored() || r.o.Overwrite {
				return replacing(stored, want.Record), nil
			}
			return stored, nil
		}})
		if err != nil {
			return err
		}
		before = done.Before // which another caller may have written since it was read
		before.Disabled, before.Disabling = false, nil
	}
	switch {
	case before.Empty():
		r.out.Made++
	case before.Equal(want.Record):
		r.out.Same++
	default:
		if r.o.Overwrite {
			r.out.Replaced++
		} else {
			r.out.Kept++
		}
		if len(r.out.Differ) < MaxDiffer {
			r.out.Differ = append(r.out.Differ, want.Ref)
		}
	}
	return nil
}

// replacing returns a record that stands in the place of a stored one.
func replacing(stored, want limiter.Record) limiter.Record {
	if stored.Entity == nil || want.Entity == nil {
		return want
	}
	e := *want.Entity
	e.Version = stored.Entity.Version
	return limiter.Record{Entity: &e}
}
