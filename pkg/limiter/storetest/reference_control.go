package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Edit implements limiter.Editor.
func (r *reference) Edit(ctx context.Context, now time.Time, namespace string, e limiter.Edit) (limiter.Edited, error) {
	return r.amend(ctx, now, namespace, e, false)
}

// amend makes an edit; always treats it as a change also if it has no effect.
func (r *reference) amend(ctx context.Context, now time.Time, namespace string, e limiter.Edit, always bool) (limiter.Edited, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return limiter.Edited{}, err
	}
	namespace, e.Ref.Entity, e.Ref.Resource = strings.Clone(namespace), strings.Clone(e.Ref.Entity), strings.Clone(e.Ref.Resource)
	used := r.used(r.buckets)[namespace]
	if !used && (e.Switch == limiter.DeleteNamespace || e.Switch == limiter.RecoverNamespace || e.Switch == limiter.BeginPurge) {
		return limiter.Edited{}, fmt.Errorf("%w: namespace %q", limiter.ErrNotFound, namespace)
	}
	before := r.records[recordKey{namespace, e.Ref}]
	after, err := e.Apply(ctx, now, r.records[recordKey{namespace, limiter.SystemLimitsRef()}].State, before)
	if err != nil {
		return limiter.Edited{}, err
	}
	done := limiter.Edited{Before: before, After: after, Changed: !after.Equal(before) || e.Switch == limiter.CreateNamespace && !used}
	refs := []limiter.Ref{e.Ref}
	if e.Deletes(after) {
		refs = append(refs, r.limitsOf(namespace, e.Ref.Entity)...)
		done.Limits = len(refs) - 1
		done.Changed = done.Changed || done.Limits > 0
	}
	if after.Entity != nil {
		if err := r.checkChain(namespace, *after.Entity); err != nil {
			return limiter.Edited{}, err
		}
	}
	switch {
	case !done.Changed && !always:
		done.After = before
		return done, nil
	case e.DryRun:
		return done, nil
	case after.Entity != nil:
		done.After.Entity = r.version(now, before, *after.Entity)
	}
	for _, ref := range refs {
		delete(r.records, recordKey{namespace, ref})
	}
	if !done.After.Empty() {
		r.records[recordKey{namespace, e.Ref}] = done.After
	}
	r.names[namespace] = true
	r.changed(namespace, refs...)
	r.audit(ctx, now, namespace, actionOf(e, done.After), e.Ref, done)
	return done, nil
}

// actionOf returns the action of the audit event of an edit.
func actionOf(e limiter.Edit, after limiter.Record) string {
	switch entity := e.Ref.Kind == limiter.RefEntity; {
	case e.Switch != limiter.Leave:
		return e.Switch.Action(e.Ref)
	case entity && after.Entity == nil:
		return limiter.ActionDeleteEntity
	case entity:
		return limiter.ActionPutEntity
	case !after.Stored():
		return limiter.ActionDeleteLimits
	}
	return limiter.ActionPutLimits
}

// Get implements limiter.Directory.
func (r *reference) Get(ctx context.Context, namespace string, ref limiter.Ref) (limiter.Record, error) {
	records := make([]limiter.Record, 1)
	_, err := r.Read(ctx, namespace, []limiter.Ref{ref}, records)
	return records[0], err
}

// ListEntities implements limiter.Directory.
func (r *reference) ListEntities(ctx context.Context, namespace string, f limiter.EntityFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return listOf(ctx, r, namespace, p, func(s limiter.Stored) (limiter.Stored, bool) {
		return s, s.Record.Entity != nil && (f.Parent == "" || s.Record.Entity.Parent == f.Parent)
	})
}

// ListLimits implements limiter.Directory.
func (r *reference) ListLimits(ctx context.Context, namespace string, f limiter.LimitsFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return listOf(ctx, r, namespace, p, func(s limiter.Stored) (limiter.Stored, bool) { return s, s.Record.Stored() && f.Selects(s.Ref) })
}

// ListDisabled implements limiter.Directory.
func (r *reference) ListDisabled(ctx context.Context, namespace string, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return listOf(ctx, r, namespace, p, func(s limiter.Stored) (limiter.Stored, bool) { return s, s.Record.Disabled })
}

// ListEvents implements limiter.AuditLog.
func (r *reference) ListEvents(ctx context.Context, namespace string, f limiter.AuditFilter, p limiter.Page) (limiter.PageOf[limiter.AuditEvent], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return limiter.PageOf[limiter.AuditEvent]{}, err
	}
	var found []limiter.AuditEvent
	for _, e := range slices.Backward(r.events) {
		if e.namespace == namespace && f.Selects(&e.AuditEvent) {
			found = append(found, e.AuditEvent)
		}
	}
	return pageOf(found, p)
}

// listOf returns a page of the records of a namespace that pick selects, as converted by pick.
func listOf[V any](ctx context.Context, r *reference, namespace string, p limiter.Page, pick func(limiter.Stored) (V, bool)) (limiter.PageOf[V], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(ctx); err != nil {
		return limiter.PageOf[V]{}, err
	}
	var all []limiter.Stored
	for key, record := range r.records {
		if key.namespace == namespace {
			all = append(all, limiter.Stored{Ref: key.ref, Record: record})
		}
	}
	slices.SortFunc(all, func(a, b limiter.Stored) int {
		return cmp.Or(cmp.Compare(a.Ref.Kind, b.Ref.Kind), cmp.Compare(a.Ref.Entity, b.Ref.Entity), cmp.Compare(a.Ref.Resource, b.Ref.Resource))
	})
	var found []V
	for _, stored := range all {
		if v, ok := pick(stored); ok {
			found = append(found, v)
		}
	}
	return pageOf(found, p)
}

// pageOf cuts a page out of a list; a cursor is the number of items before it.
func pageOf[V any](all []V, p limiter.Page) (page limiter.PageOf[V], err error) {
	p, err = p.Checked()
	if err != nil {
		return page, err
	}
	begin := 0
	if p.After != "" {
		begin, err = strconv.Atoi(p.After)
		if err != nil || begin < 0 {
			return page, fmt.Errorf("%w: %.100q is no cursor", limiter.ErrInvalid, p.After)
		}
	}
	begin = min(begin, len(all))
	end := min(begin+p.Size, len(all))
	page.Items = all[begin:end]
	if end < len(all) {
		page.Next = strconv.Itoa(end)
	}
	return page, nil
}
