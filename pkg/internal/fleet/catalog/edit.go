package catalog

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// errNothing ends a change that is not applied.
var errNothing = errors.New("nothing to apply")

// Edit implements limiter.Editor.
func (c *Catalog) Edit(ctx context.Context, now time.Time, namespace string, e limiter.Edit) (limiter.Edited, error) {
	if e.Switch.OfNamespace() {
		return editor{Catalog: c}.move(ctx, now, namespace, e)
	}
	return editor{Catalog: c}.amend(ctx, now, namespace, e, false)
}

// move changes the state of a namespace. One that is not registered can be created, and nothing
// else, and only that registers it.
func (c editor) move(ctx context.Context, now time.Time, namespace string, e limiter.Edit) (limiter.Edited, error) {
	ns, err := c.registered(ctx, namespace)
	switch {
	case err != nil:
		return limiter.Edited{}, err
	case ns.ID != "":
		return c.amend(ctx, now, namespace, e, false)
	case e.Switch != limiter.CreateNamespace:
		return limiter.Edited{}, errUnknown(namespace)
	}
	done := limiter.Edited{}
	if e.DryRun {
		done.After, err = e.Apply(ctx, now, limiter.NamespaceActive, done.Before)
	} else {
		done, err = c.amend(ctx, now, namespace, e, true)
	}
	done.Changed = err == nil
	return done, err
}

// amend makes an edit; always says that it is applied also where it alters nothing. An entity
// with more limits than one change can delete takes several changes. The last of them deletes
// the entity itself, so a call that failed on the way can be made again.
func (c editor) amend(ctx context.Context, now time.Time, namespace string, e limiter.Edit, always bool) (limiter.Edited, error) {
	e.Ref.Entity, e.Ref.Resource = strings.Clone(e.Ref.Entity), strings.Clone(e.Ref.Resource)
	for deleted := 0; ; deleted += maxDeletes {
		var done limiter.Edited
		err := c.change(ctx, namespace, func(ctx context.Context, sp *space, generation uint64) (out edit, err error) {
			if done, out, err = c.prepare(ctx, sp, now, e, generation); err != nil {
				return edit{}, err
			}
			if e.DryRun || !done.Changed && !always {
				return edit{}, errNothing
			}
			return out, nil
		})
		more := done.Limits > maxDeletes
		done.Limits += deleted
		switch {
		case errors.Is(err, errNothing):
			if !done.Changed {
				done.After = done.Before
			}
			return done, nil
		case err != nil:
			return limiter.Edited{}, err
		case !more:
			return done, nil
		}
	}
}

// prepare makes an edit of the record as it is.
func (c editor) prepare(ctx context.Context, sp *space, now time.Time, e limiter.Edit, generation uint64) (done limiter.Edited, out edit, err error) {
	stored, err := c.table.readRecords(ctx, sp.id, []limiter.Ref{e.Ref, limiter.SystemLimitsRef()})
	if err != nil {
		return done, out, err
	}
	before := stored[0].Record
	if e.Switch == limiter.EndPurge && c.begun > 0 && before.State == limiter.NamespacePurging && stored[0].Generation != c.begun {
		return done, out, errAnotherPurge
	}
	after, err := e.Apply(ctx, now, stored[1].Record.State, before)
	if err != nil {
		return done, out, err
	}
	done = limiter.Edited{Before: before, After: after, Changed: !after.Equal(before)}
	switch {
	case e.Ref.Kind != limiter.RefEntity:
		out = c.limitsEdit(sp, e.Ref, after, generation)
	case e.Deletes(after):
		out, done.Limits, err = c.deletion(ctx, sp, e.Ref.Entity, after, generation)
		done.Changed = done.Changed || done.Limits > 0
	case after.Entity == nil:
		out = edit{writes: []*schema.ItemWrite{c.putBare(sp, e.Ref, after, generation)}, refs: []limiter.Ref{e.Ref}, event: limiter.AuditEvent{Subject: e.Ref, Detail: after.Detail()}}
	default:
		out, done.After, err = c.entityEdit(ctx, sp, now, before.Entity, after, generation)
	}
	if e.Switch != limiter.Leave {
		out.event.Action = e.Switch.Action(e.Ref)
	}
	if e.Switch == limiter.BeginPurge || e.Switch == limiter.EndPurge {
		out.refs = nil // any record may be gone
	}
	out.event.Before, out.event.After = done.Before, done.After
	return done, out, err
}

// entityEdit puts an entity in the place of old, nil for none.
func (c editor) entityEdit(ctx context.Context, sp *space, now time.Time, old *limiter.Entity, r limiter.Record, generation uint64) (edit, limiter.Record, error) {
	e := *r.Entity
	if err := c.checkHierarchy(ctx, sp, e); err != nil {
		return edit{}, limiter.Record{}, err
	}
	e.ID, e.Name, e.Parent, e.Metadata = strings.Clone(e.ID), strings.Clone(e.Name), strings.Clone(e.Parent), maps.Clone(e.Metadata)
	e.CreatedAt, e.Version = time.UnixMilli(now.UnixMilli()).UTC(), generation
	read := uint64(0)
	if old != nil {
		e.CreatedAt, read = old.CreatedAt, old.Version
	}
	r.Entity = &e
	ref := limiter.EntityRef(e.ID)
	return edit{
		writes: []*schema.ItemWrite{putEntity(sp.id, r, read)},
		refs:   []limiter.Ref{ref},
		event:  limiter.AuditEvent{Action: limiter.ActionPutEntity, Subject: ref, Detail: r.Detail()},
	}, r, nil
}

// limitsEdit puts limits, or deletes them where there are none.
func (c editor) limitsEdit(sp *space, ref limiter.Ref, r limiter.Record, generation uint64) edit {
	e := edit{refs: []limiter.Ref{ref}, event: limiter.AuditEvent{Action: limiter.ActionPutLimits, Subject: ref, Detail: r.Detail()}}
	item := schema.LimitsItem(sp.id, ref, r, generation)
	if !r.Stored() {
		e.event.Action = limiter.ActionDeleteLimits
	}
	if r.Empty() {
		item = schema.Tombstone(sp.id, schema.KeyOfRef(sp.id, ref), ref.Kind, generation, c.now().Add(schema.ChangeTTL))
	}
	e.writes = []*schema.ItemWrite{schema.NewPut(item)}
	return e
}

// PutEntity implements limiter.Catalog. The version of an entity is the generation
// that wrote it. So one that is deleted and created again never has a version that
// was read before.
func (c *Catalog) PutEntity(ctx context.Context, now time.Time, namespace string, e limiter.Entity) (limiter.Entity, error) {
	done, err := editor{Catalog: c}.amend(ctx, now, namespace, limiter.Edit{Ref: limiter.EntityRef(e.ID), Change: limiter.ReplaceEntity(e)}, true)
	if err != nil {
		return limiter.Entity{}, err
	}
	stored := *done.After.Entity
	stored.Metadata = maps.Clone(stored.Metadata)
	return stored, nil
}

// DeleteEntity implements limiter.Catalog.
func (c *Catalog) DeleteEntity(ctx context.Context, namespace, id string) error {
	nothing := func(limiter.Record) (limiter.Record, error) { return limiter.Record{}, nil }
	_, err := editor{Catalog: c}.amend(ctx, time.Time{}, namespace, limiter.Edit{Ref: limiter.EntityRef(id), Change: nothing}, true)
	return err
}

// PutLimits implements limiter.Catalog.
func (c *Catalog) PutLimits(ctx context.Context, namespace string, ref limiter.Ref, r limiter.Record) error {
	put, err := limiter.ReplaceLimits(ref, r)
	if err != nil {
		return err
	}
	_, err = editor{Catalog: c}.amend(ctx, time.Time{}, namespace, limiter.Edit{Ref: ref, Change: put}, true)
	return err
}
