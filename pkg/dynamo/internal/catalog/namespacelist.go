package catalog

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ListNamespaces implements limiter.Directory, in order of the names in keys. A name that is too
// long to be kept stands as it does in its key.
func (c *Catalog) ListNamespaces(ctx context.Context, p limiter.Page) (page limiter.PageOf[limiter.Namespace], err error) {
	if p, err = p.Checked(); err != nil {
		return page, err
	}
	from, err := namespaceCursor(p.After)
	if err == nil {
		err = c.usable(ctx)
	}
	if err != nil {
		return page, err
	}
	items, next, err := c.table.page(ctx, schema.QueryNamespaces(c.table.name, false), from, p.Size)
	if err != nil {
		return page, err
	}
	for _, item := range items {
		ns, err := c.table.namespaceOf(item)
		if err != nil {
			return limiter.PageOf[limiter.Namespace]{}, err
		}
		page.Items = append(page.Items, limiter.Namespace{Name: ns.Title(), ID: ns.ID, CreatedAt: ns.CreatedAt})
	}
	if next != nil {
		page.Next = base64.RawURLEncoding.EncodeToString([]byte(next[schema.AttrSK]))
	}
	return page, nil
}

// namespaceCursor returns the key of the registry that a cursor stands for; nil for the first
// page.
func namespaceCursor(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no key is the beginning
	}
	first := schema.NamespaceKey("")
	sk, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !strings.HasPrefix(string(sk), strings.TrimSuffix(first.SK, schema.EscapeName(""))) {
		return nil, errCursor
	}
	return map[string]string{schema.AttrPK: first.PK, schema.AttrSK: string(sk)}, nil
}
