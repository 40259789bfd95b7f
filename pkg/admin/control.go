package admin

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// ControlConfig configures a [Control]. Access and Explainer are required.
type ControlConfig struct {
	Access    *Access
	Explainer *Explainer   // answers /v1/explain
	Archive   Archive      // answers /v1/backup and /v1/restore; nil = nothing to copy
	Logger    *slog.Logger // gets each request and its principal; nil = no log
}

// Bounds of a server of a [Control], for requests that are no backup and no restore.
const (
	ControlTimeout   = 30 * time.Second // to read a request, and to write its answer
	ControlMaxHeader = 16 << 10         // bytes
	maxControlBody   = 1 << 20          // bytes
)

// Control is the handler of administration: requests that copy secrets or change state. Each
// route names the least role that may ask for it; a request without a principal learns
// nothing, not even which routes there are.
type Control struct {
	access *Access
	log    *slog.Logger
	mux    http.ServeMux
}

// route is an endpoint of a Control.
type route struct {
	pattern string // of http.ServeMux
	role    Role   // the least that may ask
	body    int64  // the largest body, in bytes
	handler http.Handler
}

// NewControl returns the handler of the listener of administration.
func NewControl(cfg ControlConfig) *Control {
	c := &Control{access: cfg.Access, log: cfg.Logger}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	copies := newArchive(cfg.Archive)
	for _, r := range []route{
		{"POST /v1/explain", RoleRead, maxControlBody, jsonOnly(cfg.Explainer)},
		{"GET /v1/backup", RoleAdminister, 0, http.HandlerFunc(copies.backup)},
		{"POST /v1/restore", RoleAdminister, maxRestore, http.HandlerFunc(copies.restore)},
	} {
		c.mux.Handle(r.pattern, c.guarded(r))
	}
	return c
}

// ServeHTTP implements http.Handler.
func (c *Control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := new(http.CrossOriginProtection).Check(r); err != nil { // a browser shows a certificate for any page
		writeError(w, http.StatusForbidden, "pages of another site are not answered: "+err.Error())
		return
	}
	p, err := c.access.principal(r)
	if err != nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="ratelimit"`)
		w.Header().Set("Connection", "close") // no stranger keeps one of the few
		writeError(w, http.StatusUnauthorized, err.Error())
		return
	}
	introduce(r.Context())
	c.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
}

// guarded lets principals in whose role suffices, and bounds the body.
func (c *Control) guarded(to route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := PrincipalFrom(r.Context()) // without one the role is RoleNone
		if p.Role < to.role {
			writeError(w, http.StatusForbidden, "the role "+to.role.String()+" is needed, and this principal has the role "+p.Role.String())
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, to.body)
		c.log.InfoContext(r.Context(), "administration", "request", to.pattern, "principal", p.Name, "role", p.Role.String())
		to.handler.ServeHTTP(w, r)
	})
}
