package api

import (
	"context"
	"net/http"
)

// Subject names an entity, a resource, or the namespace without either. One of the two is
// empty.
type Subject struct {
	Entity   Name
	Resource Name
}

// disabledPath is the path of a disabled subject below that of its namespace.
func disabledPath(namespace string, of Subject) string {
	path := namespace + "/disabled"
	switch {
	case of.Entity != "":
		return path + "/entities/" + segment(string(of.Entity))
	case of.Resource != "":
		return path + "/resources/" + segment(string(of.Resource))
	}
	return path + "/namespace"
}

// Disabled says whether a subject is disabled.
func (n *NamespaceClient) Disabled(ctx context.Context, of Subject) (*Disabled, error) {
	return send[Disabled](ctx, n.Service, http.MethodGet, disabledPath(n.path, of), nil, nil, ClientOptions{})
}

// ListDisabled lists the disabled subjects.
func (n *NamespaceClient) ListDisabled(ctx context.Context, p Page) (*List[Disabled], error) {
	return send[List[Disabled]](ctx, n.Service, http.MethodGet, n.path+"/disabled", query(p, nil), nil, ClientOptions{})
}

// Disable makes the service deny every request that would take from a subject. Of the options DryRun,
// Reason, AllowNew and AllowKinds count.
func (n *NamespaceClient) Disable(ctx context.Context, of Subject, o ClientOptions) (*Change[Disabled], error) {
	return send[Change[Disabled]](ctx, n.Service, http.MethodPut, disabledPath(n.path, of), nil, nil, ClientOptions{DryRun: o.DryRun, Reason: o.Reason, AllowNew: o.AllowNew, AllowKinds: o.AllowKinds})
}

// Enable undoes Disable. The same options count.
func (n *NamespaceClient) Enable(ctx context.Context, of Subject, o ClientOptions) (*Change[Disabled], error) {
	return send[Change[Disabled]](ctx, n.Service, http.MethodDelete, disabledPath(n.path, of), nil, nil, ClientOptions{DryRun: o.DryRun, Reason: o.Reason, AllowNew: o.AllowNew, AllowKinds: o.AllowKinds})
}
