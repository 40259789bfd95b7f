package catalog

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ListOrphans implements limiter.Purger: the IDs in the registry whose name has another ID, or
// none. A page takes a query, and a read of the names. A name that is too long to be kept leads
// nowhere, so its ID is never listed.
func (c *Catalog) ListOrphans(ctx context.Context, p limiter.Page) (page limiter.PageOf[limiter.Namespace], err error) {
	if p, err = p.Checked(); err != nil {
		return page, err
	}
	from, err := registryCursor(p.After, schema.NamespaceIDKey(""))
	if err == nil {
		err = c.usable(ctx)
	}
	if err != nil {
		return page, err
	}
	items, next, err := c.table.page(ctx, schema.QueryNamespaceIDs(c.table.name), from, p.Size)
	if err != nil {
		return page, err
	}
	ids := make([]schema.Namespace, len(items))
	for i, item := range items {
		if ids[i], err = namespaceOf(c.table.name, item); err != nil {
			return page, err
		}
	}
	if page.Items, err = c.table.orphans(ctx, ids); err == nil && next != nil {
		page.Next = base64.RawURLEncoding.EncodeToString([]byte(next[schema.AttrSK]))
	}
	return page, err
}

// orphans returns those of the records by ID that no record by name leads to.
func (t *table) orphans(ctx context.Context, ids []schema.Namespace) ([]limiter.Namespace, error) {
	var keys []schema.Key
	seen := make(map[schema.Key]bool, len(ids))
	for _, ns := range ids {
		if k := schema.NamespaceKey(ns.Name); ns.Name != "" && !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	found, err := t.read(ctx, keys)
	if err != nil {
		return nil, err
	}
	var all []limiter.Namespace
	for _, ns := range ids {
		if ns.Name == "" {
			continue
		}
		k := schema.NamespaceKey(ns.Name)
		var named schema.Namespace
		if item := found[k]; item != nil {
			if named, err = schema.ParseNamespace(t.name, k, item); err != nil {
				return nil, err
			}
		}
		if named.ID != ns.ID {
			all = append(all, limiter.Namespace{Name: ns.Name, ID: ns.ID, CreatedAt: ns.CreatedAt})
		}
	}
	return all, nil
}

// PurgeOrphan implements limiter.Purger. The counters go, too: no name leads to them.
func (c *Catalog) PurgeOrphan(ctx context.Context, id string, progress func(deleted int)) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	id = strings.Clone(id)
	unknown := fmt.Errorf("%w: %.100q is no id of an orphan", limiter.ErrNotFound, id)
	if !schema.IsNamespaceID(id) {
		return unknown
	}
	k := schema.NamespaceIDKey(id)
	items, err := c.table.read(ctx, []schema.Key{k})
	if err != nil {
		return err
	}
	if items[k] == nil {
		return unknown
	}
	ns, err := schema.ParseNamespace(c.table.name, k, items[k])
	if err != nil {
		return err
	}
	found, err := c.table.orphans(ctx, []schema.Namespace{ns})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return unknown
	}
	return c.table.purgeID(ctx, id, progress)
}

// purgeID deletes everything under an ID, then its counters, which no index has, and its record last.
func (t *table) purgeID(ctx context.Context, id string, progress func(deleted int)) error {
	deleted := 0
	count := func(n int) {
		deleted += n
		if n > 0 && progress != nil {
			progress(deleted)
		}
	}
	for partition := range schema.IndexPartitions {
		if err := t.deleteAll(ctx, schema.QueryNamespace(t.name, id, partition), count); err != nil {
			return err
		}
	}
	if err := t.delete(ctx, []schema.Key{schema.ConfigurationKey(id), schema.GenerationKey(id)}); err != nil {
		return err
	}
	return t.delete(ctx, []schema.Key{schema.NamespaceIDKey(id)})
}
