package catalog

import (
	"context"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ListUsage implements limiter.Usage. It reads the snapshots that an aggregator wrote; without
// one there are none. A snapshot of the last second may be missing, unless both its entity and its resource are named.
func (c *Catalog) ListUsage(ctx context.Context, namespace string, f limiter.UsageFilter, p limiter.Page) (limiter.PageOf[limiter.UsageSnapshot], error) {
	if err := f.Check(); err != nil {
		return limiter.PageOf[limiter.UsageSnapshot]{}, err
	}
	stages := func(ns string) (all []stage) {
		for _, q := range schema.QueriesUsage(c.table.name, ns, f) {
			all = append(all, stage{query: q})
		}
		return all
	}
	return inStages(ctx, c, namespace, p, stages, func(_ string, s stage, from map[string]string, size int) ([]limiter.UsageSnapshot, map[string]string, error) {
		if s.query.IndexName != nil {
			return lists{&c.table}.usageByIndex(ctx, s, from, size)
		}
		return lists{&c.table}.usageOfEntity(ctx, s, f, from, size)
	})
}

// usageOfEntity returns the snapshots of a query of the table that a filter selects. The query
// finds the snapshots themselves, also of other windows.
func (t lists) usageOfEntity(ctx context.Context, s stage, f limiter.UsageFilter, from map[string]string, size int) (found []limiter.UsageSnapshot, next map[string]string, err error) {
	read := size
	if f.Resource == "" {
		read = limiter.MaxPage
	}
	items, next, err := t.page(ctx, s.query, from, read)
	if err != nil {
		return nil, nil, err
	}
	for i, item := range items {
		u, err := schema.ParseUsage(t.name, item)
		if err != nil {
			return nil, nil, err
		}
		if u.Window == f.Window && f.Selects(u.Start) {
			found = append(found, u)
		}
		if len(found) == size && i < len(items)-1 {
			k, err := schema.ItemKey(t.name, item)
			return found, map[string]string{schema.AttrPK: k.PK, schema.AttrSK: k.SK}, err
		}
	}
	return found, next, nil
}

// usageByIndex returns the snapshots whose keys a query of an index finds.
func (t lists) usageByIndex(ctx context.Context, s stage, from map[string]string, size int) (found []limiter.UsageSnapshot, next map[string]string, err error) {
	keys, records, next, err := t.behind(ctx, s, from, size)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range keys {
		if records[k] == nil { // it has expired since
			continue
		}
		u, err := schema.ParseUsage(t.name, records[k])
		if err != nil {
			return nil, nil, err
		}
		found = append(found, u)
	}
	return found, next, nil
}
