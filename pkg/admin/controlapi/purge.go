package controlapi

import (
	"context"
	"net/http"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// purgeSlice is the longest time that one request purges. The caller repeats it.
const purgeSlice = 5 * time.Second

const orphansPath = "/v1/orphans"

func purgeEndpoints() []endpoint {
	return []endpoint{
		{
			method: http.MethodPost, path: namespacePath + "/purge", role: admin.RoleAdminister, result: api.Purged{}, bare: true,
			summary: "Purge a deleted namespace, for 5 seconds at most: everything in it is deleted for good", run: purgeNamespace,
		},
		{
			method: http.MethodGet, path: orphansPath, role: admin.RoleRead, result: api.List[api.Orphan]{},
			query: pageParams(), summary: "List the IDs of the store's table that belong to no namespace", run: listOrphans,
		},
		{
			method: http.MethodPost, path: orphansPath + "/{id}/purge", role: admin.RoleAdminister, result: api.Purged{}, bare: true,
			summary: "Purge an orphan, for 5 seconds at most: everything under its ID is deleted for good", run: purgeOrphan,
		},
	}
}

func purgeNamespace(c *call) (any, error) {
	return c.slice(func(ctx context.Context, progress func(int)) error {
		return c.store.Purge(ctx, c.now(), c.namespace(), progress)
	})
}

func purgeOrphan(c *call) (any, error) {
	if c.store == nil {
		return nil, errNoStore()
	}
	return c.slice(func(ctx context.Context, progress func(int)) error {
		return c.store.PurgeOrphan(ctx, c.r.PathValue("id"), progress)
	})
}

// slice runs a purge until it is done, or for purgeSlice.
func (c *call) slice(purge func(ctx context.Context, progress func(int)) error) (any, error) {
	ctx, stop := context.WithTimeout(c.ctx(), purgeSlice)
	defer stop()
	var out api.Purged
	err := purge(ctx, func(deleted int) { out.Deleted = deleted })
	out.Done = err == nil
	if out.Done || ctx.Err() != nil && c.ctx().Err() == nil { // the end of the slice is no error
		return out, nil
	}
	return nil, err
}

func listOrphans(c *call) (any, error) {
	if c.store == nil {
		return nil, errNoStore()
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := c.store.ListOrphans(c.ctx(), p)
	return listOf(page, err, func(ns *limiter.Namespace) api.Orphan {
		return api.Orphan{ID: ns.ID, Name: api.Name(ns.Name), CreatedAt: ns.CreatedAt}
	})
}
