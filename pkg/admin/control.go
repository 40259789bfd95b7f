package admin

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
)

// ControlConfig configures a [Control]. Access and Explainer are required.
type ControlConfig struct {
	Access    *Access
	Explainer *Explainer   // answers /v1/explain
	Archive   Archive      // answers /v1/backup and /v1/restore; nil = nothing to copy
	Uncopied  string       // how the data is copied without an archive; "" = there is none
	Routes    []Route      // further endpoints
	Console   Console      // a page for any caller; nil = none
	Logger    *slog.Logger // gets each request and its principal, reading ones at the level debug; nil = no log
}

// Bounds of a server of a [Control], for requests other than backup and restore.
const (
	ControlTimeout   = 30 * time.Second // to read a request, and to write its answer
	ControlMaxHeader = 16 << 10         // bytes
	maxControlBody   = 1 << 20          // bytes
)

// Control is the handler of administration, with requests that copy secrets or change state. Each
// route has the least role that may ask for it. The refusal of a request without a principal shows
// nothing, not even whether there is such a route.
type Control struct {
	access  *Access
	console Console
	log     *slog.Logger
	mux     Mux
}

// Console answers requests for a page and its files. They are the same for any caller, with or
// without a principal. They have no secret, and change nothing.
type Console interface {
	Has(r *http.Request) bool
	http.Handler
}

// Route is an endpoint of a [Control].
type Route struct {
	Pattern string // of a Mux, with a method
	Role    Role   // the least role that may ask
	MaxBody int64  // the largest body, in bytes
	Handler http.Handler
}

// NewControl returns the handler of the listener of administration.
func NewControl(cfg ControlConfig) *Control {
	c := &Control{access: cfg.Access, log: cfg.Logger, console: cfg.Console}
	c.log = cmp.Or(c.log, slog.New(slog.DiscardHandler))
	copies := newArchive(cfg.Archive, cfg.Uncopied)
	own := []Route{
		{Pattern: "POST /v1/explain", Role: RoleRead, MaxBody: maxControlBody, Handler: jsonOnly(cfg.Explainer)},
		{Pattern: "GET /v1/backup", Role: RoleAdminister, Handler: http.HandlerFunc(copies.backup)},
		{Pattern: "POST /v1/restore", Role: RoleAdminister, MaxBody: maxRestore, Handler: http.HandlerFunc(copies.restore)},
	}
	for _, r := range slices.Concat(own, cfg.Routes) {
		c.mux.Handle(r.Pattern, c.guarded(r))
	}
	return c
}

// ServeHTTP implements http.Handler.
func (c *Control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := new(http.CrossOriginProtection).Check(r); err != nil { // a browser sends its certificate for any page
		writeProblem(w, http.StatusForbidden, "requests of pages of another site are refused: "+err.Error())
		return
	}
	if overSocket(r) && named(r.Host) {
		writeProblem(w, http.StatusForbidden, "the Host of a request over the socket is a name with a domain: a page of that domain may have made it resolve to this machine; use localhost")
		return
	}
	c.answer(w, r)
}

// named reports whether a Host is a name that another party can make resolve to any address.
func named(host string) bool {
	return strings.Contains(host, ".") && !guard{loopback: true}.isOwnHost(host)
}

// answer answers a request that is not from a page of another site.
func (c *Control) answer(w http.ResponseWriter, r *http.Request) {
	if c.console != nil && c.console.Has(r) {
		w.Header().Set("Connection", "close") // frees the connection for others
		c.console.ServeHTTP(w, r)
		return
	}
	p, err := c.access.principal(r)
	if err != nil {
		refuseCaller(w, err)
		return
	}
	markAuthenticated(r.Context())
	r = r.WithContext(WithPrincipal(r.Context(), p))
	if h, pattern := c.mux.Handler(r); pattern == "" {
		refuse(w, r, h)
		return
	}
	c.mux.ServeHTTP(w, r)
}

// refuseCaller answers a request without a principal. A token would not help a user of a proxy.
func refuseCaller(w http.ResponseWriter, err error) {
	status, scheme := http.StatusUnauthorized, "Bearer"
	if e, ok := errors.AsType[proxyError](err); ok {
		status, scheme = e.status, "Proxy"
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", scheme+` realm="ratelimit"`)
	}
	w.Header().Set("Connection", "close") // frees the connection for others
	writeProblem(w, status, err.Error())
}

// refuse answers a request that has no route as its handler would, but with a problem.
func refuse(w http.ResponseWriter, r *http.Request, h http.Handler) {
	answer := headerOnly{header: http.Header{}}
	h.ServeHTTP(&answer, r)
	if answer.code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", answer.header.Get("Allow"))
		writeProblem(w, answer.code, fmt.Sprintf("%.100s has only the methods %s", r.URL.Path, answer.header.Get("Allow")))
		return
	}
	writeProblem(w, http.StatusNotFound, fmt.Sprintf("there is no %.100s; /v1/openapi.json describes every path", r.URL.Path))
}

// headerOnly is a ResponseWriter that has only the header and the code of an answer.
type headerOnly struct {
	header http.Header
	code   int
}

// Header implements http.ResponseWriter.
func (m *headerOnly) Header() http.Header { return m.header }

// Write implements http.ResponseWriter.
func (*headerOnly) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (m *headerOnly) WriteHeader(code int) { m.code = code }

// guarded passes requests of principals with a sufficient role, and bounds the body.
func (c *Control) guarded(to Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := PrincipalFrom(r.Context()) // without one the role is RoleNone
		if p.Role < to.Role {
			writeProblem(w, http.StatusForbidden, "the role "+to.Role.String()+" is needed, and this principal has the role "+p.Role.String())
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, to.MaxBody)
		level := slog.LevelInfo
		if to.Role <= RoleRead { // consoles repeat these often
			level = slog.LevelDebug
		}
		c.log.Log(r.Context(), level, "administration", "request", to.Pattern, "principal", p.Name, "role", p.Role.String())
		to.Handler.ServeHTTP(w, r)
	})
}
