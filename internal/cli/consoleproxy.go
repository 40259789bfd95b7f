package cli

import (
	"encoding/json"
	"io"
	"io/fs"
	"log"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// The paths that a consoleProxy answers itself.
const (
	consoleLoginPath   = admin.ConsolePrefix + "login"
	consoleSessionPath = admin.ConsolePrefix + "session"
)

// cookiePrefix begins the name of the cookie; the port follows. Browsers send a cookie to all ports of a host, so the
// consoles of two commands need two names.
const cookiePrefix = "ratelimit_console_"

// maxLogin bounds the body of a login, in bytes.
const maxLogin = 1 << 10

// consoleProxyConfig configures a [consoleProxy]. All fields are required.
type consoleProxyConfig struct {
	Service api.Doer         // sends requests with the credential of the command
	Base    *url.URL         // of the admin listener of the service
	Address string           // host:port that the proxy answers on
	Now     func() time.Time // the time of day
}

// consoleProxy lets a browser of this machine use the console of a service with the credential of a command.
//
// It answers on a loopback address. The page and its files are for any caller. All other requests need a
// cookie, the session of the proxy. They go to the service with the credential of the command, which the
// browser never has. A browser gets the session once, for the token in the fragment of [consoleProxy.Link]:
// the token is good for one login, within [consoleLoginTime].
//
//	POST /console/login    {"token": "…"}: 204 and the cookie; 401 for a token that is wrong, used or too old
//	GET  /console/session  204 with the session, 401 without it; a service itself answers 404
//
// Pages of other sites are refused by the headers Host, Origin and Sec-Fetch-Site. It is safe for concurrent use.
type consoleProxy struct {
	session *consoleSession
	address string // of the consoleProxyConfig
	cookie  string // name of the cookie
	forward http.Handler
}

// newConsoleProxy returns a proxy, whose token is good from now on.
func newConsoleProxy(cfg consoleProxyConfig) *consoleProxy {
	forward := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { rewriteForService(r, cfg.Base) },
		Transport:      serviceTransport{cfg.Service},
		ModifyResponse: func(resp *http.Response) error { resp.Header.Del("Set-Cookie"); return nil },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuseConsole(w, http.StatusBadGateway, api.Uncertain, err.Error())
		},
		ErrorLog: log.New(io.Discard, "", 0), // the page shows an error
	}
	_, port, _ := net.SplitHostPort(cfg.Address) // without a port the name is shorter
	return &consoleProxy{session: newConsoleSession(cfg.Now), address: cfg.Address, cookie: cookiePrefix + port, forward: forward}
}

// Link returns the address of the page with the token of the login. The token is in the fragment, which a browser sends
// to no server.
func (p *consoleProxy) Link() string { return "http://" + p.address + "/#login=" + p.session.token }

// serviceTransport is an api.Doer as a round tripper.
type serviceTransport struct{ service api.Doer }

// RoundTrip implements http.RoundTripper.
func (t serviceTransport) RoundTrip(r *http.Request) (*http.Response, error) { return t.service.Do(r) }

// rewriteForService makes a request of the browser one of the command. The service gets neither the cookies of the
// browser nor its headers about pages.
func rewriteForService(r *httputil.ProxyRequest, base *url.URL) {
	r.SetURL(base)
	r.Out.RequestURI = "" // clients must not set it
	for name := range r.Out.Header {
		if strings.HasPrefix(name, "Sec-") {
			r.Out.Header.Del(name)
		}
	}
	for _, name := range []string{"Cookie", "Authorization", "Origin", "Referer"} {
		r.Out.Header.Del(name)
	}
}

// ServeHTTP implements http.Handler.
func (p *consoleProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isLoopback(r.Host) {
		refuseConsole(w, http.StatusMisdirectedRequest, api.Forbidden, "the Host of the request is neither 127.0.0.1 nor localhost: a page of another site may have made its name resolve to this machine")
		return
	}
	own := r.URL.Path == consoleLoginPath || r.URL.Path == consoleSessionPath
	if !own && isConsolePage(r) {
		p.forward.ServeHTTP(w, r)
		return
	}
	if isForeign(r) {
		refuseConsole(w, http.StatusForbidden, api.Forbidden, "requests of pages of another site are refused")
		return
	}
	switch {
	case r.URL.Path == consoleLoginPath:
		p.login(w, r)
	case !p.isOpen(r):
		refuseConsole(w, http.StatusUnauthorized, api.Unauthorized, "this browser has no session of this console: open the link of the command ratelimit console")
	case r.URL.Path == consoleSessionPath:
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// isLoopback reports whether a Host is a name or an address of this machine alone. Its port may be that of a forwarded
// connection.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "127.0.0.1" || strings.EqualFold(host, "localhost")
}

// isForeign reports whether a request is of a page that another site, or another port, has served.
func isForeign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return true
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// isConsolePage reports whether a request is for the page or one of its files, which have no secret. A path that a
// server could read as another one is none of these.
func isConsolePage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	path := r.URL.Path
	return path == "/" || strings.HasPrefix(path, admin.ConsolePrefix) && r.URL.RawPath == "" && fs.ValidPath(path[1:])
}

// isOpen reports whether a request has the cookie of the session.
func (p *consoleProxy) isOpen(r *http.Request) bool {
	c, err := r.Cookie(p.cookie)
	return err == nil && p.session.has(c.Value)
}

// login gives the session for the token.
func (p *consoleProxy) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuseConsole(w, http.StatusMethodNotAllowed, api.Method, consoleLoginPath+" has only the method POST")
		return
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		refuseConsole(w, http.StatusUnsupportedMediaType, api.MediaType, "send JSON, with the header Content-Type: application/json")
		return
	}
	var body struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLogin)).Decode(&body); err != nil {
		refuseConsole(w, http.StatusBadRequest, api.Invalid, `the body must be {"token": "…"}, with the token of the link`)
		return
	}
	value, ok := p.session.open(body.Token)
	if !ok {
		refuseConsole(w, http.StatusUnauthorized, api.Unauthorized, "the link was used, or is older than "+consoleLoginTime.String()+": start ratelimit console again")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: p.cookie, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // the loopback address has no TLS
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

// refuseConsole answers with a problem, as the service does.
func refuseConsole(w http.ResponseWriter, status int, kind api.Kind, why string) {
	w.Header().Set("Cache-Control", "no-store")
	admin.WriteProblem(w, api.Problem{Type: kind, Status: status, Detail: why})
}
