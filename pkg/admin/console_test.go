package admin_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/admin"
)

// page is a console of one file.
type page struct{}

func (page) Has(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Path == "/" }

func (page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, known := admin.PrincipalFrom(r.Context()); known {
		w.WriteHeader(http.StatusTeapot) // nothing in the answer may depend on the caller
	}
}

// The page is for any caller, and does not open other paths.
func TestConsoleIsOpen(t *testing.T) {
	access, token := tokenOf(admin.RoleRead)
	explainer, _ := newExplainer(t, users("requests", "", consume("rpm", 1000, 0)))
	c := admin.NewControl(admin.ControlConfig{Access: access, Explainer: explainer, Console: page{}})
	for _, tt := range []struct {
		method, path, token string
		want                int
	}{
		{http.MethodGet, "/", "", 200},
		{http.MethodGet, "/", token, 200},
		{http.MethodPost, "/", "", 401},
		{http.MethodPost, "/", token, 404},
		{http.MethodGet, "/console/", "", 401},
		{http.MethodGet, "/v1/status", "", 401},
		{http.MethodGet, "/v1/backup", "", 401},
		{http.MethodGet, "/v1/backup", token, 403},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, http.NoBody)
		if tt.token != "" {
			r.Header.Set("Authorization", "Bearer "+tt.token)
		}
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s %s, with a token %t: %d, want %d", tt.method, tt.path, tt.token != "", w.Code, tt.want)
		}
	}
}

// A browser may reach the socket by a forwarded port. Then a page of another site could make its
// own name resolve to this machine, so such names are refused.
func TestSocketHosts(t *testing.T) {
	explainer, _ := newExplainer(t, users("requests", "", consume("rpm", 1000, 0)))
	c := admin.NewControl(admin.ControlConfig{Access: new(admin.Access), Explainer: explainer})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:9000": 200, "127.0.0.1:9000": 200, "[::1]:9000": 200, "admin": 200, "": 200, "x.localhost": 200,
		"evil.example": 403, "evil.example:9000": 403, "127.0.0.1.evil.example": 403,
	} {
		question := strings.NewReader(`{"domain":"shop","entries":[{"key":"user","value":"ada"}]}`)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/explain", question)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Name: "admin.sock", Net: "unix"}))
		r.Host = host
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("host %q: %d %s, want %d", host, w.Code, w.Body, want)
		}
	}
}
