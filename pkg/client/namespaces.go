package client

import (
	"context"
	"net/http"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// NamespaceFilter selects namespaces. The zero value selects active ones.
type NamespaceFilter struct {
	Deleted bool // selects those that are deleted, being purged or purged, and no others
}

// ListNamespaces lists namespaces in use.
func (c *Client) ListNamespaces(ctx context.Context, f NamespaceFilter, p Page) (*api.List[api.Namespace], error) {
	params := map[string]string{}
	if f.Deleted {
		params["deleted"] = "true"
	}
	return send[api.List[api.Namespace]](ctx, c, http.MethodGet, "/v1/namespaces", query(p, params), nil, Options{})
}

// Get reads the namespace, in any state. One that was never used is a problem of the kind
// api.NotFound.
func (n *Namespace) Get(ctx context.Context) (*api.Namespace, error) {
	return send[api.Namespace](ctx, n.Service, http.MethodGet, n.path, nil, nil, Options{})
}

// Create brings the namespace into use, even if it was purged. Of the options DryRun and Reason count.
func (n *Namespace) Create(ctx context.Context, o Options) (*api.Change[api.Namespace], error) {
	return move(ctx, n, http.MethodPut, "", o)
}

// Delete deletes the namespace. Requests that would take from it are denied, and its content stays.
// Of the options DryRun and Reason count.
func (n *Namespace) Delete(ctx context.Context, o Options) (*api.Change[api.Namespace], error) {
	return move(ctx, n, http.MethodDelete, "", o)
}

// Recover undoes Delete. Of the options DryRun and Reason count.
func (n *Namespace) Recover(ctx context.Context, o Options) (*api.Change[api.Namespace], error) {
	return move(ctx, n, http.MethodPost, "/recover", o)
}

func move(ctx context.Context, n *Namespace, method, verb string, o Options) (*api.Change[api.Namespace], error) {
	return send[api.Change[api.Namespace]](ctx, n.Service, method, n.path+verb, nil, nil, Options{DryRun: o.DryRun, Reason: o.Reason})
}

// Purge deletes the whole content of the namespace for good, for 5 seconds at most. The namespace
// must be deleted. While the answer is not Done, the next call goes on, even after an error.
func (n *Namespace) Purge(ctx context.Context) (*api.Purged, error) {
	return send[api.Purged](ctx, n.Service, http.MethodPost, n.path+"/purge", nil, nil, Options{})
}

// ListOrphans lists the IDs of a table that belong to no namespace.
func (c *Client) ListOrphans(ctx context.Context, p Page) (*api.List[api.Orphan], error) {
	return send[api.List[api.Orphan]](ctx, c, http.MethodGet, "/v1/orphans", query(p, nil), nil, Options{})
}

// PurgeOrphan deletes everything under the ID of an orphan, as Purge does.
func (c *Client) PurgeOrphan(ctx context.Context, id string) (*api.Purged, error) {
	return send[api.Purged](ctx, c, http.MethodPost, "/v1/orphans/"+segment(id)+"/purge", nil, nil, Options{})
}
