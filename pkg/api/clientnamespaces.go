package api

import (
	"context"
	"net/http"
)

// NamespaceFilter selects namespaces. The zero value selects active ones.
type NamespaceFilter struct {
	Deleted bool // selects those that are deleted, being purged or purged, and no others
}

// ListNamespaces lists namespaces in use.
func (c *Client) ListNamespaces(ctx context.Context, f NamespaceFilter, p Page) (*List[Namespace], error) {
	params := map[string]string{}
	if f.Deleted {
		params["deleted"] = "true"
	}
	return send[List[Namespace]](ctx, c, http.MethodGet, "/v1/namespaces", query(p, params), nil, ClientOptions{})
}

// Get reads the namespace, in any state. One that was never used, and that no rule names,
// is a problem of the kind NotFound.
func (n *NamespaceClient) Get(ctx context.Context) (*Namespace, error) {
	return send[Namespace](ctx, n.Service, http.MethodGet, n.path, nil, nil, ClientOptions{})
}

// Create brings the namespace into use, even if it was purged. Of the options DryRun and Reason count.
func (n *NamespaceClient) Create(ctx context.Context, o ClientOptions) (*Change[Namespace], error) {
	return move(ctx, n, http.MethodPut, "", o)
}

// Delete deletes the namespace. Requests that would take from it are denied, and its content stays.
// Of the options DryRun and Reason count.
func (n *NamespaceClient) Delete(ctx context.Context, o ClientOptions) (*Change[Namespace], error) {
	return move(ctx, n, http.MethodDelete, "", o)
}

// Recover undoes Delete. Of the options DryRun and Reason count.
func (n *NamespaceClient) Recover(ctx context.Context, o ClientOptions) (*Change[Namespace], error) {
	return move(ctx, n, http.MethodPost, "/recover", o)
}

func move(ctx context.Context, n *NamespaceClient, method, verb string, o ClientOptions) (*Change[Namespace], error) {
	return send[Change[Namespace]](ctx, n.Service, method, n.path+verb, nil, nil, ClientOptions{DryRun: o.DryRun, Reason: o.Reason})
}

// Purge deletes the whole content of the namespace for good, for 5 seconds at most. The namespace
// must be deleted. While the answer is not Done, the next call goes on, even after an error.
func (n *NamespaceClient) Purge(ctx context.Context) (*Purged, error) {
	return send[Purged](ctx, n.Service, http.MethodPost, n.path+"/purge", nil, nil, ClientOptions{})
}

// ListOrphans lists the IDs of a table that belong to no namespace.
func (c *Client) ListOrphans(ctx context.Context, p Page) (*List[Orphan], error) {
	return send[List[Orphan]](ctx, c, http.MethodGet, "/v1/orphans", query(p, nil), nil, ClientOptions{})
}

// PurgeOrphan deletes everything under the ID of an orphan, as Purge does.
func (c *Client) PurgeOrphan(ctx context.Context, id string) (*Purged, error) {
	return send[Purged](ctx, c, http.MethodPost, "/v1/orphans/"+segment(id)+"/purge", nil, nil, ClientOptions{})
}
