package controlapi

import (
	"net/http"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// New returns the endpoints.
func New(cfg Config) (*API, error) {
	a := &API{cfg: cfg}
	var err error
	a.document, err = document(a.endpoints(), cfg.Status.Version)
	return a, err
}

// maxBody bounds the body of a request, in bytes. 16 limits, or an entity with its metadata, take
// much less.
const maxBody = 64 << 10

// Routes returns the endpoints as routes of an admin.Control.
func (a *API) Routes() []admin.Route {
	all := a.endpoints()
	routes := make([]admin.Route, 0, len(all))
	for _, e := range all {
		routes = append(routes, admin.Route{Pattern: e.method + " " + e.path, Role: e.role, MaxBody: maxBody, Handler: a.handler(e)})
	}
	return routes
}

func (a *API) endpoints() []endpoint {
	all := append(a.generalEndpoints(), observer{a.cfg.Activity, a.cfg.Fleet}.endpoints()...)
	all = append(all, fleetReader{a.cfg.Fleet}.endpoints()...)
	all = append(all, a.namespaceEndpoints()...)
	all = append(all, purgeEndpoints()...)
	all = append(all, a.entityEndpoints()...)
	all = append(all, finder{a.cfg.Sources, a.cfg.Activity}.endpoints()...)
	all = append(all, a.limitsEndpoints()...)
	all = append(all, switches{a.newNames()}.endpoints()...)
	all = append(all, balances{limiter.PresentBuckets(a.cfg.Buckets), a.cfg.Sources}.endpoints()...)
	all = append(all, newUsageReader(&a.cfg).endpoints()...)
	return append(all, auditEndpoints(a.cfg.Status.Can.Audit)...)
}

func (a *API) generalEndpoints() []endpoint {
	return []endpoint{
		{
			method: http.MethodGet, path: "/v1/status", role: admin.RoleRead, result: api.Status{},
			summary: "State of the replica that answers, what needs a person, and the principal of the request", run: a.status,
		},
		{
			method: http.MethodGet, path: "/v1/openapi.json", role: admin.RoleRead,
			summary: "This document", run: func(*call) (any, error) { return raw(a.document), nil },
		},
	}
}

// raw is an answer that is JSON already.
type raw []byte

// MarshalJSON implements json.Marshaler.
func (r raw) MarshalJSON() ([]byte, error) { return r, nil }

func (a *API) status(c *call) (any, error) {
	s := a.cfg.Status
	p, _ := admin.PrincipalFrom(c.r.Context())
	s.Principal, s.Role = p.Name, p.Role.String()
	if a.cfg.Present != nil {
		a.cfg.Present(c.ctx(), &s)
	}
	return s, nil
}
