package admin_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/admin"
)

// tokenOf returns an access with one token of a role.
func tokenOf(role admin.Role) (*admin.Access, string) {
	token, hash := admin.NewToken()
	a := new(admin.Access)
	_, other := admin.NewToken()
	a.Set(admin.Credentials{Tokens: []admin.Token{{Name: "other", Role: admin.RoleAdminister, Hash: other}, {Name: "one", Role: role, Hash: hash}}})
	return a, token
}

// Over TCP only a token lets a caller in, with the role of the token. The caller's address, real or
// claimed, does not count.
func TestTokens(t *testing.T) {
	question := `{"domain":"shop","entries":[{"key":"user","value":"ada"}]}`
	for _, test := range []struct {
		name                          string
		role                          admin.Role
		header                        string // "" = of the token
		explained, backedUp, restored int
	}{
		{"administer", admin.RoleAdminister, "", 200, 200, 200},
		{"operate", admin.RoleOperate, "", 200, 403, 403},
		{"read", admin.RoleRead, "", 200, 403, 403},
		{"none", admin.RoleNone, "", 401, 401, 401},
		{"no token", admin.RoleAdminister, "-", 401, 401, 401},
		{"another token", admin.RoleAdminister, "Bearer rlt_" + strings.Repeat("A", 43), 401, 401, 401},
		{"a short token", admin.RoleAdminister, "Bearer rlt_", 401, 401, 401},
		{"another scheme", admin.RoleAdminister, "Basic cmx0OnJsdA==", 401, 401, 401},
	} {
		t.Run(test.name, func(t *testing.T) {
			access, token := tokenOf(test.role)
			explainer, _ := newExplainer(t, users("requests", "", consume("rpm", 1000, 0)))
			a := &copier{text: "all"}
			c := admin.NewControl(admin.ControlConfig{Access: access, Explainer: explainer, Archive: a})
			for _, call := range []struct {
				method, path, kind, body string
				want                     int
			}{
				{http.MethodPost, "/v1/explain", "application/json", question, test.explained},
				{http.MethodGet, "/v1/backup", "", "", test.backedUp},
				{http.MethodPost, "/v1/restore", admin.BackupType, "all", test.restored},
			} {
				r := httptest.NewRequestWithContext(t.Context(), call.method, call.path, strings.NewReader(call.body))
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8082}))
				r.RemoteAddr, r.Host = "127.0.0.1:4711", "localhost"
				r.Header.Set("X-Forwarded-For", "127.0.0.1")
				r.Header.Set("Content-Type", call.kind)
				switch test.header {
				case "":
					r.Header.Set("Authorization", "Bearer "+token)
				case "-":
				default:
					r.Header.Set("Authorization", test.header)
				}
				w := httptest.NewRecorder()
				c.ServeHTTP(w, r)
				if w.Code != call.want {
					t.Errorf("%s: got %d %s, want %d", call.path, w.Code, w.Body, call.want)
				}
				if w.Code == http.StatusUnauthorized && (w.Header().Get("WWW-Authenticate") == "" || w.Header().Get("Connection") != "close") {
					t.Errorf("%s: a refusal has the headers %v", call.path, w.Header())
				}
			}
			if (a.got != "") != (test.restored == 200) {
				t.Errorf("restored %q", a.got)
			}
		})
	}
}

// Requests that change the state are in the log, with the principal. Reads and repeated reads by
// pages are not.
func TestReadsAreNotLogged(t *testing.T) {
	access, token := tokenOf(admin.RoleAdminister)
	var log strings.Builder
	answer := func(http.ResponseWriter, *http.Request) {}
	routes := []admin.Route{
		{Pattern: "GET /v1/read", Role: admin.RoleRead, Handler: http.HandlerFunc(answer)},
		{Pattern: "POST /v1/change", Role: admin.RoleOperate, Handler: http.HandlerFunc(answer)},
	}
	c := admin.NewControl(admin.ControlConfig{
		Access: access, Explainer: new(admin.Explainer), Archive: &copier{}, Routes: routes, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for _, call := range []struct{ method, path string }{{http.MethodGet, "/v1/read"}, {http.MethodPost, "/v1/change"}, {http.MethodGet, "/v1/read"}} {
		r := httptest.NewRequestWithContext(t.Context(), call.method, call.path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		c.ServeHTTP(httptest.NewRecorder(), r)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), `request="POST /v1/change" principal=one role=administer`) {
		t.Errorf("%d lines, want one of the change:\n%s", lines, &log)
	}
}

// A short word is refused as a token, even if the configuration has its hash.
func TestShortTokens(t *testing.T) {
	access := new(admin.Access)
	access.Set(admin.Credentials{Tokens: []admin.Token{{Name: "word", Role: admin.RoleAdminister, Hash: sha256.Sum256([]byte("secret"))}}})
	c := admin.NewControl(admin.ControlConfig{Access: access, Explainer: new(admin.Explainer), Archive: &copier{text: "all"}})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/backup", nil)
	r.Header.Set("Authorization", "Bearer secret")
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "too short") {
		t.Errorf("got %d %s, want 401", w.Code, w.Body)
	}
}

// A verified certificate lets in where there are no tokens. Where there are tokens, both are
// needed.
func TestCertificates(t *testing.T) {
	holder := &x509.Certificate{Subject: pkix.Name{CommonName: "ops"}}
	with, token := tokenOf(admin.RoleRead)
	for _, test := range []struct {
		name   string
		access *admin.Access
		state  *tls.ConnectionState
		header string
		want   int
	}{
		{"verified", new(admin.Access), &tls.ConnectionState{PeerCertificates: []*x509.Certificate{holder}, VerifiedChains: [][]*x509.Certificate{{holder}}}, "", 200},
		{"shown", new(admin.Access), &tls.ConnectionState{PeerCertificates: []*x509.Certificate{holder}}, "", 401},
		{"none", new(admin.Access), &tls.ConnectionState{}, "", 401},
		{"no TLS", new(admin.Access), nil, "Bearer " + token, 401},
		{"verified, and no token", with, &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{holder}}}, "", 401},
		{"verified, and a token of a lesser role", with, &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{holder}}}, "Bearer " + token, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := admin.NewControl(admin.ControlConfig{Access: test.access, Explainer: new(admin.Explainer), Archive: &copier{text: "all"}})
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/backup", nil)
			r.TLS = test.state
			r.Header.Set("Authorization", test.header)
			w := httptest.NewRecorder()
			c.ServeHTTP(w, r)
			if w.Code != test.want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, test.want)
			}
		})
	}
}

// Requests of a page of another site are refused, even with a browser's certificate.
func TestControlRefusesOtherSites(t *testing.T) {
	c := admin.NewControl(admin.ControlConfig{Access: new(admin.Access), Explainer: new(admin.Explainer), Archive: &copier{}})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/restore", strings.NewReader("all"))
	r.Header.Set("Content-Type", admin.BackupType)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if w := overSocket(c, r); w.Code != http.StatusForbidden {
		t.Errorf("got %d %s, want 403", w.Code, w.Body)
	}
}

// Handlers get the principal of a request. No other request has one.
func TestPrincipals(t *testing.T) {
	if p, ok := admin.PrincipalFrom(t.Context()); ok || p != (admin.Principal{}) {
		t.Errorf("got %v of no request", p)
	}
	var got admin.Principal
	a := asking{see: func(p admin.Principal) { got = p }}
	c := admin.NewControl(admin.ControlConfig{Access: new(admin.Access), Explainer: new(admin.Explainer), Archive: a})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/restore", strings.NewReader("all"))
	r.Header.Set("Content-Type", admin.BackupType)
	overSocket(c, r)
	if want := (admin.Principal{Name: admin.SocketPrincipal, Role: admin.RoleAdminister}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTokenHash(t *testing.T) {
	token, hash := admin.NewToken()
	if again, _ := admin.NewToken(); again == token {
		t.Error("two tokens are the same")
	}
	if got, err := admin.ParseTokenHash(hash.String()); err != nil || got != hash {
		t.Errorf("got %v, %v, want %v", got, err, hash)
	}
	for _, text := range []string{"", "sha256:", token, hash.String()[7:], hash.String() + "00", hash.String()[:70] + "x"} {
		if _, err := admin.ParseTokenHash(text); err == nil || text != "" && strings.Contains(err.Error(), text) && len(text) > 10 {
			t.Errorf("%q: got %v, want an error that does not repeat it", text, err)
		}
	}
}
