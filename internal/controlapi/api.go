package controlapi

import (
	"net/http"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Store is the store that operators ask.
type Store = limiter.Control

// Config configures an [API]. Now is required.
type Config struct {
	Store    Store           // nil = the store offers no control: such requests are refused
	Buckets  limiter.Buckets // nil = balances cannot be changed: the same
	Usage    limiter.Usage   // nil = the store keeps no usage: the same
	Now      func() time.Time
	Status   api.Status // of the service; Principal and Role are those of each request
	Activity Activity   // the zero value = none is counted: requests for it are refused
}

// API has the endpoints of administration.
type API struct {
	cfg      Config
	document []byte
}

// New returns the endpoints.
func New(cfg Config) (*API, error) {
	a := &API{cfg: cfg}
	var err error
	a.document, err = document(a.endpoints(), cfg.Status.Version)
	return a, err
}

// maxBody bounds the body of a request, in bytes. 16 limits, or an entity with its metadata,
// take much less.
const maxBody = 64 << 10

// endpoint is a path and a method, as the router and the document see it.
type endpoint struct {
	method, path string
	role         admin.Role
	summary      string
	query        []param
	body         any  // a value of the type of the body; nil = none
	result       any  // a value of the type of the answer; nil = any JSON
	bare         bool // a PUT or DELETE without preconditions
	run          func(*call) (any, error)
	polled       bool // by pages that show what happens
}

// param is a parameter of a query.
type param struct {
	name, about string
}

// The parameters that several endpoints have.
func pageParams(more ...param) []param {
	return append(more, param{"after", "the member next of the page before"}, param{"size", "most items of a page, 1 to 1000; 100 without it"})
}

func dryRun() param { return param{"dryRun", "true makes every check and changes nothing"} }

// Routes returns the endpoints as routes of an admin.Control.
func (a *API) Routes() []admin.Route {
	all := a.endpoints()
	routes := make([]admin.Route, 0, len(all))
	for _, e := range all {
		routes = append(routes, admin.Route{Pattern: e.method + " " + e.path, Role: e.role, MaxBody: maxBody, Handler: a.handler(e), Polled: e.polled})
	}
	return routes
}

func (a *API) endpoints() []endpoint {
	all := append(a.generalEndpoints(), a.activityEndpoints()...)
	all = append(all, a.namespaceEndpoints()...)
	all = append(all, a.purgeEndpoints()...)
	all = append(all, a.entityEndpoints()...)
	all = append(all, a.limitsEndpoints()...)
	all = append(all, a.disabledEndpoints()...)
	all = append(all, a.bucketEndpoints()...)
	all = append(all, a.usageEndpoints()...)
	return append(all, a.auditEndpoints()...)
}

func (a *API) generalEndpoints() []endpoint {
	return []endpoint{
		{
			method: http.MethodGet, path: "/v1/status", role: admin.RoleRead, result: api.Status{},
			summary: "Version and store of the service, and the principal of the request", run: a.status,
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
	return s, nil
}
