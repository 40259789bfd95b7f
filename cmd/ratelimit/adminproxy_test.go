package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/cli"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// peer is a client of the admin listener with a certificate, as a proxy is one.
type peer struct {
	client http.Client
	server string
}

func newPeer(server string, authority *x509.CertPool, shown programtest.Identity) *peer {
	secure := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authority, Certificates: []tls.Certificate{shown.Pair}}
	return &peer{client: http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: secure, ForceAttemptHTTP2: true}}, server: server}
}

// ask makes a request with headers, each a name and a value, and returns the status and the text of the answer.
func (p *peer) ask(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.server+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "limits.example.com" // a proxy may pass that of the browser
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.ProtoMajor != 1 {
		t.Errorf("the protocol is %s", resp.Proto)
	}
	return resp.StatusCode, string(text)
}

// A proxy names its users, who have the roles of the configuration, and stand in the audit and in the log. Other peers cannot
// use its header, and the proxy alone is nobody. A change of the file counts at once, on connections that are open.
func TestAdminProxy(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(server.RunDirVariable, filepath.Join(dir, "run"))
	web, ca := programtest.NewIdentity(t, dir, "web"), programtest.NewIdentity(t, dir, "ca")
	token, hash := newTokenPair(t)
	settings := func(rest string) string {
		return adminConfig(fmt.Sprintf("address: '127.0.0.1:0', tls: {cert: %q, key: %q, client_ca: %q}, tokens: {ci: {role: operate, hash: %q}}%s", web.Cert, web.Key, ca.Cert, hash, rest))
	}
	file := programtest.WriteFile(t, "c.yaml", settings(", proxy: {certificate: login.auth.svc, users: {ada@example.com: administer}, groups: {sre: operate}, role: read}"))
	r := start(t, "--config", file, "--data", filepath.Join(dir, "data"))
	proxy := newPeer(r.adminURL(t), web.Pool, ca.Issue(t, "login", x509.Certificate{DNSNames: []string{"login.auth.svc"}}))
	other := newPeer(r.adminURL(t), web.Pool, ca.Issue(t, "other", x509.Certificate{DNSNames: []string{"other.auth.svc"}}))
	const user, groups = "X-Auth-Request-Email", "X-Auth-Request-Groups"
	const limits, change = "/v1/namespaces/default/limits/entities/user%2Fada/api?allowNew=true", `{"limits": {"rpd": "9/day"}}`
	const disable = "/v1/namespaces/default/disabled/entities/user%2Feve?allowNew=true"
	for _, test := range []struct {
		name         string
		from         *peer
		method, path string
		headers      []string
		status       int
		want         string
	}{
		{"the page", proxy, http.MethodGet, "/", nil, 200, "<title>"},
		{"a reader", proxy, http.MethodGet, "/v1/status", []string{user, "rob@example.com"}, 200, `"principal": "proxy:rob@example.com"`},
		{"a reader changes", proxy, http.MethodPut, limits, []string{user, "rob@example.com"}, 403, "the role administer is needed, and this principal has the role read"},
		{"an operator", proxy, http.MethodGet, "/v1/status", []string{user, "olga@example.com", groups, "dev,sre"}, 200, `"role": "operate"`},
		{"an administrator", proxy, http.MethodPut, limits, []string{user, "ada@example.com", "Sec-Fetch-Site", "same-origin", "Origin", "https://limits.example.com"}, 201, ""},
		{"a page of another site", proxy, http.MethodPut, limits, []string{user, "ada@example.com", "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403, "requests of pages of another site are refused"},
		{"no user", proxy, http.MethodGet, "/v1/backup", nil, 401, "the proxy must name one user in the header X-Auth-Request-Email, which is missing"},
		{"a token of the client", proxy, http.MethodPut, limits, []string{"Authorization", "Bearer " + token}, 401, "which is missing"},
		{"two users", proxy, http.MethodGet, "/v1/status", []string{user, "rob@example.com", strings.ToLower(user), "ada@example.com"}, 401, "is there 2 times"},
		{"another peer", other, http.MethodGet, "/v1/status", []string{user, "ada@example.com"}, 401, "a token is needed"},
		{"another peer with a token", other, http.MethodGet, "/v1/status", []string{user, "ada@example.com", "Authorization", "Bearer " + token}, 200, `"principal": "ci"`},
	} {
		if status, text := test.from.ask(t, test.method, test.path, change, test.headers...); status != test.status || !strings.Contains(text, test.want) {
			t.Errorf("%s: got %d %s, want %d with %s", test.name, status, text, test.status, test.want)
		}
	}
	if status, text := proxy.ask(t, http.MethodPut, disable, "", user, "olga@example.com", groups, "sre"); status != http.StatusOK {
		t.Errorf("an operator disables: %d %s", status, text)
	}
	code, stdout, stderr := output(t, "list", "audit", "--data", filepath.Join(dir, "data"), "-o", "json", "--principal", "proxy:ada@example.com")
	if code != 0 || strings.Count(stdout, `"principal": "proxy:ada@example.com"`) != 1 || !strings.Contains(stdout, "user/ada") {
		t.Errorf("the audit: exit code %d\n%s%s", code, stdout, stderr)
	}
	if log := r.log.String(); !strings.Contains(log, "principal=proxy:ada@example.com role=administer") || strings.Contains(log, token) {
		t.Errorf("the log lacks the user, or has the token:\n%s", log)
	}

	replaceFile(t, file, settings(", proxy: {certificate: login.auth.svc, role: read}"))
	eventually(t, "the role to be less", func() bool {
		status, _ := proxy.ask(t, http.MethodPut, limits, change, user, "ada@example.com")
		return status == http.StatusForbidden
	})
	replaceFile(t, file, settings(""))
	eventually(t, "the proxy to be refused", func() bool {
		status, text := proxy.ask(t, http.MethodGet, "/v1/status", "", user, "ada@example.com")
		return status == http.StatusUnauthorized && strings.Contains(text, "a token is needed")
	})
}

// A proxy whose certificate has another name than the configuration says lets in no user, although a certificate would be
// enough without it.
func TestAdminProxyWithAWrongName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(server.RunDirVariable, filepath.Join(dir, "run"))
	t.Setenv(cli.TokenVariable, "")
	web, ca := programtest.NewIdentity(t, dir, "web"), programtest.NewIdentity(t, dir, "ca")
	file := programtest.WriteFile(t, "c.yaml", adminConfig(fmt.Sprintf("address: '127.0.0.1:0', tls: {cert: %q, key: %q, client_ca: %q}, proxy: {certificate: login.auth.example, role: read}", web.Cert, web.Key, ca.Cert)))
	r := start(t, "--config", file)
	id := ca.Issue(t, "login", x509.Certificate{DNSNames: []string{"login.auth.svc"}})
	if status, text := newPeer(r.adminURL(t), web.Pool, id).ask(t, http.MethodGet, "/v1/status", "", "X-Auth-Request-Email", "ada@example.com"); status != http.StatusUnauthorized || !strings.Contains(text, "server.admin.proxy.certificate") {
		t.Errorf("got %d %s", status, text)
	}
	if code, _, stderr := output(t, "status", "--server", r.adminURL(t), "--ca", web.Cert, "--cert", id.Cert, "--key", id.Key); code != 1 || !strings.Contains(stderr, "a token is needed") {
		t.Errorf("the command: exit code %d\n%s", code, stderr)
	}
}
