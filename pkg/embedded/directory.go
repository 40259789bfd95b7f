package embedded

import (
	"cmp"
	"context"
	"encoding/base64"
	"iter"
	"maps"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// directory implements limiter.Directory, except for the namespaces.
type directory struct{ catalog *catalog }

// ListEntities implements limiter.Directory, in order of IDs.
func (d *directory) ListEntities(ctx context.Context, namespace string, f limiter.EntityFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return d.list(ctx, p, d.catalog.in(namespace), func(_ limiter.Ref, r limiter.Record) bool {
		return r.Entity != nil && (f.Parent == "" || r.Entity.Parent == f.Parent)
	})
}

// EntityPlans returns the names of the plans that entities of any namespace have, in order.
func (d *directory) EntityPlans() []string {
	d.catalog.mu.RLock()
	defer d.catalog.mu.RUnlock()
	plans := make(map[string]bool)
	for _, r := range d.catalog.records {
		if r.Entity != nil && r.Entity.Plan != "" {
			plans[r.Entity.Plan] = true
		}
	}
	return slices.Sorted(maps.Keys(plans))
}

// ListLimits implements limiter.Directory: those of the system, of resources and of
// entities, each in order of names.
func (d *directory) ListLimits(ctx context.Context, namespace string, f limiter.LimitsFilter, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	records := d.catalog.in(namespace)
	if f.General || f.Entity != "" {
		records = d.catalog.of(owner{namespace, f.Entity})
	}
	return d.list(ctx, p, records, func(ref limiter.Ref, r limiter.Record) bool { return r.Stored() && f.Selects(ref) })
}

// ListDisabled implements limiter.Directory, in the order of ListLimits, with entities last.
func (d *directory) ListDisabled(ctx context.Context, namespace string, p limiter.Page) (limiter.PageOf[limiter.Stored], error) {
	return d.list(ctx, p, d.catalog.in(namespace), func(_ limiter.Ref, r limiter.Record) bool { return r.Disabled })
}

// Get implements limiter.Directory.
func (d *directory) Get(ctx context.Context, namespace string, ref limiter.Ref) (limiter.Record, error) {
	if err := d.catalog.usable(ctx); err != nil {
		return limiter.Record{}, err
	}
	return d.catalog.get(namespace, ref), nil
}

// list returns a page of the selected records, of some that it reads under the lock.
func (d *directory) list(ctx context.Context, p limiter.Page, of iter.Seq2[limiter.Ref, limiter.Record], selects func(limiter.Ref, limiter.Record) bool) (page limiter.PageOf[limiter.Stored], err error) {
	p, err = p.Checked()
	if err != nil {
		return page, err
	}
	after, err := parseCursor(p.After)
	if err != nil {
		return page, err
	}
	if err := d.catalog.usable(ctx); err != nil {
		return page, err
	}
	first := least[limiter.Stored]{most: p.Size + 1, compare: func(a, b limiter.Stored) int { return compareRefs(a.Ref, b.Ref) }}
	d.catalog.mu.RLock()
	for ref, r := range of {
		if (p.After == "" || compareRefs(ref, after) > 0) && selects(ref, r) {
			first.add(limiter.Stored{Ref: ref, Record: r})
		}
	}
	d.catalog.mu.RUnlock()
	page.Items = first.sorted()
	if len(page.Items) > p.Size {
		page.Items = page.Items[:p.Size]
		page.Next = cursor(page.Items[p.Size-1].Ref)
	}
	return page, nil
}

// compareRefs orders limits from the general to the specific, and then by names.
func compareRefs(a, b limiter.Ref) int {
	return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Resource, b.Resource))
}

// A cursor names the last record of a page: its kind, entity and resource.
func cursor(ref limiter.Ref) string {
	buf := appendText(appendText([]byte{byte(ref.Kind)}, ref.Entity), ref.Resource)
	return base64.RawURLEncoding.EncodeToString(buf)
}

func parseCursor(text string) (ref limiter.Ref, err error) {
	if text == "" {
		return ref, nil
	}
	buf, err := base64.RawURLEncoding.DecodeString(text)
	r := &recordReader{Rest: buf, Failed: err != nil}
	ref.Kind = limiter.RefKind(r.Byte(byte(limiter.RefSystemLimits)))
	ref.Entity, ref.Resource = r.Text(), r.Text()
	if r.Failed || len(r.Rest) > 0 {
		return limiter.Ref{}, errCursor(text)
	}
	return ref, nil
}
