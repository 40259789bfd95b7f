package catalog

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ListNamespaces implements limiter.Directory, in order of the names in keys. A name that is too
// long to be kept stands as it does in its key. A page takes a query, and a read of the records of
// its namespaces.
func (c *Catalog) ListNamespaces(ctx context.Context, f limiter.NamespaceFilter, p limiter.Page) (page limiter.PageOf[limiter.Namespace], err error) {
	if p, err = p.Checked(); err != nil {
		return page, err
	}
	from, err := registryCursor(p.After, schema.NamespaceKey(""))
	if err == nil {
		err = c.usable(ctx)
	}
	if err != nil {
		return page, err
	}
	items, next, err := c.table.page(ctx, schema.QueryNamespaces(c.table.name), from, p.Size)
	if err != nil {
		return page, err
	}
	all := make([]schema.Namespace, len(items))
	for i, item := range items {
		if all[i], err = namespaceOf(c.table.name, item); err != nil {
			return page, err
		}
	}
	found, err := c.table.states(ctx, all)
	if err != nil {
		return page, err
	}
	page.Items = slices.DeleteFunc(found, func(ns limiter.Namespace) bool { return !f.Selects(ns) })
	if next != nil {
		page.Next = base64.RawURLEncoding.EncodeToString([]byte(next[schema.AttrSK]))
	}
	return page, nil
}

// GetNamespace implements limiter.Directory.
func (c *Catalog) GetNamespace(ctx context.Context, name string) (limiter.Namespace, error) {
	ns, err := c.registered(ctx, name)
	switch {
	case err != nil:
		return limiter.Namespace{}, err
	case ns.ID == "":
		return limiter.Namespace{}, errUnknown(name)
	}
	found, err := c.table.states(ctx, []schema.Namespace{ns})
	if err != nil {
		return limiter.Namespace{}, err
	}
	found[0].Name = name
	return found[0], nil
}

func errUnknown(name string) error {
	return fmt.Errorf("%w: namespace %.100q was never in use", limiter.ErrNotFound, name)
}

// states reads the states of namespaces.
func (t *table) states(ctx context.Context, all []schema.Namespace) ([]limiter.Namespace, error) {
	system := limiter.SystemLimitsRef()
	keys := make([]schema.Key, len(all))
	for i := range all {
		keys[i] = schema.KeyOfRef(all[i].ID, system)
	}
	items, err := t.read(ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make([]limiter.Namespace, len(all))
	for i := range all {
		stored, err := schema.ParseRecord(t.name, all[i].ID, system, items[keys[i]])
		if err != nil {
			return nil, err
		}
		r := stored.Record
		found[i] = limiter.Namespace{Name: all[i].Title(), ID: all[i].ID, CreatedAt: all[i].CreatedAt, State: r.State, Since: r.Since, Disabled: r.Disabled}
	}
	return found, nil
}

// registryCursor returns the key of the registry that a cursor stands for; nil for the first
// page. The key is of the kind of first.
func registryCursor(text string, first schema.Key) (map[string]string, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no key is the beginning
	}
	sk, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !strings.HasPrefix(string(sk), strings.TrimSuffix(first.SK, schema.EscapeName(""))) {
		return nil, errCursor
	}
	return map[string]string{schema.AttrPK: first.PK, schema.AttrSK: string(sk)}, nil
}
