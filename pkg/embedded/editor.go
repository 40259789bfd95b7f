package embedded

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// editor implements limiter.Editor, and the changes of limiter.Store.
type editor struct {
	catalog    *catalog
	namespaces *namespaces
}

// PutEntity implements limiter.Store.
func (d *editor) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	ref := limiter.EntityRef(e.ID)
	var stored limiter.Entity
	err := d.catalog.change(ctx, namespace, func(c *edit) error {
		done, err := c.amend(now, limiter.Edit{Ref: ref, Change: limiter.ReplaceEntity(e)})
		if err == nil {
			stored = *done.After.Entity
		}
		return err
	})
	stored.Metadata = maps.Clone(stored.Metadata)
	return stored, err
}

// DeleteEntity implements limiter.Store.
func (d *editor) DeleteEntity(ctx context.Context, namespace, id string) error {
	nothing := func(limiter.Record) (limiter.Record, error) { return limiter.Record{}, nil }
	return d.catalog.change(ctx, namespace, func(c *edit) error {
		_, err := c.amend(time.Time{}, limiter.Edit{Ref: limiter.EntityRef(id), Change: nothing})
		return err
	})
}

// PutLimits implements limiter.Store.
func (d *editor) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	put, err := limiter.ReplaceLimits(ref, r)
	if err != nil {
		return err
	}
	return d.catalog.change(ctx, namespace, func(c *edit) error {
		_, err := c.amend(time.Time{}, limiter.Edit{Ref: ref, Change: put})
		return err
	})
}

// errNothing ends a change that is not applied.
var errNothing = errors.New("nothing to apply")

// Edit implements limiter.Editor.
func (d *editor) Edit(ctx context.Context, now time.Time, namespace string, e limiter.Edit) (done limiter.Edited, err error) {
	err = d.catalog.change(ctx, namespace, func(c *edit) error {
		used, err := d.namespaces.usedBefore(namespace, e.Switch)
		if err == nil {
			done, err = c.amend(now, e)
			done.Changed = done.Changed || !used
		}
		switch {
		case err != nil:
			return err
		case !done.Changed:
			done.After = done.Before
			return errNothing
		case e.DryRun:
			return errNothing
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	if err != nil {
		return limiter.Edited{}, err
	}
	return done, nil
}
