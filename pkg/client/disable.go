package client

import (
	"context"
	"net/http"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// Subject names an entity, a resource, or the namespace without either. One of the two is
// empty.
type Subject struct {
	Entity   api.Name
	Resource api.Name
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
func (n *Namespace) Disabled(ctx context.Context, of Subject) (*api.Disabled, error) {
	return send[api.Disabled](ctx, n.Service, http.MethodGet, disabledPath(n.path, of), nil, nil, Options{})
}

// ListDisabled lists the disabled subjects.
func (n *Namespace) ListDisabled(ctx context.Context, p Page) (*api.List[api.Disabled], error) {
	return send[api.List[api.Disabled]](ctx, n.Service, http.MethodGet, n.path+"/disabled", query(p, nil), nil, Options{})
}

// Disable makes the service deny every request that would take from a subject. Of the options DryRun,
// Reason, AllowNew and AllowKinds count.
func (n *Namespace) Disable(ctx context.Context, of Subject, o Options) (*api.Change[api.Disabled], error) {
	return send[api.Change[api.Disabled]](ctx, n.Service, http.MethodPut, disabledPath(n.path, of), nil, nil, Options{DryRun: o.DryRun, Reason: o.Reason, AllowNew: o.AllowNew, AllowKinds: o.AllowKinds})
}

// Enable undoes Disable. The same options count.
func (n *Namespace) Enable(ctx context.Context, of Subject, o Options) (*api.Change[api.Disabled], error) {
	return send[api.Change[api.Disabled]](ctx, n.Service, http.MethodDelete, disabledPath(n.path, of), nil, nil, Options{DryRun: o.DryRun, Reason: o.Reason, AllowNew: o.AllowNew, AllowKinds: o.AllowKinds})
}
