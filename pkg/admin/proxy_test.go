package admin_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

const (
	userHeader   = "X-Auth-Request-Email"
	groupsHeader = "X-Auth-Request-Groups"
	proxyName    = "login.auth.svc"
)

// aProxy lets in two users and two groups.
func aProxy() *admin.Proxy {
	return &admin.Proxy{
		Certificate: proxyName, UserHeader: userHeader, GroupsHeader: groupsHeader,
		Users:  map[string]admin.Role{"ada@example.com": admin.RoleAdminister, "rob@example.com": admin.RoleRead},
		Groups: map[string]admin.Role{"sre": admin.RoleOperate, "ops": admin.RoleAdminister, "dev": admin.RoleRead},
	}
}

// whoami is a Control whose GET and POST /v1/me answer with the principal. Only GET is for all roles.
func whoami(access *admin.Access) *admin.Control {
	me := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := admin.PrincipalFrom(r.Context())
		_, _ = fmt.Fprintf(w, "%s, %s", p.Name, p.Role)
	})
	return admin.NewControl(admin.ControlConfig{Access: access, Explainer: new(admin.Explainer), Routes: []admin.Route{
		{Pattern: "GET /v1/me", Role: admin.RoleRead, Handler: me},
		{Pattern: "POST /v1/me", Role: admin.RoleOperate, Handler: me},
	}})
}

// listener is an admin listener with TLS, and the authority of its clients.
type listener struct {
	*httptest.Server
	access *admin.Access
	ca     programtest.Identity
}

func newListener(t *testing.T, c admin.Credentials) listener {
	t.Helper()
	l := listener{access: new(admin.Access), ca: programtest.NewIdentity(t, t.TempDir(), "ca")}
	l.access.Set(c)
	l.Server = httptest.NewUnstartedServer(whoami(l.access))
	l.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: l.ca.Pool}
	l.Config.ErrorLog = nil
	l.StartTLS()
	t.Cleanup(l.Close)
	return l
}

// dial opens a connection with the certificate of a client.
func (l listener) dial(t *testing.T, client programtest.Identity) (*tls.Conn, error) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(l.Certificate())
	conn, err := tls.Dial("tcp", l.Listener.Addr().String(), &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{client.Pair}})
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// askAs sends lines of headers as they are, and returns the status and the text of the answer.
func askAs(t *testing.T, conn net.Conn, method string, headers ...string) (int, string) {
	t.Helper()
	lines := append([]string{method + " /v1/me HTTP/1.1", "Content-Length: 0"}, headers...)
	if !strings.Contains(strings.Join(headers, "\n"), "Host:") {
		lines = append(lines, "Host: ratelimit-admin:8082")
	}
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		return 0, err.Error()
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	if challenge := answer.Header.Get("WWW-Authenticate"); (answer.StatusCode == http.StatusUnauthorized) != (challenge != "") {
		t.Errorf("%d has the challenge %q", answer.StatusCode, challenge)
	}
	return answer.StatusCode, string(body)
}

// The proxy names its user in one header, and the user's role is that of the user, of a group, or of
// all.
func TestProxy(t *testing.T) {
	const ada, eve = "X-Auth-Request-Email: ada@example.com", "X-Auth-Request-Email: eve@example.com"
	token, hash := admin.NewToken()
	long := strings.Repeat("a", limiter.MaxPrincipal-len(admin.ProxyPrincipal))
	for _, test := range []struct {
		name    string
		headers []string
		others  admin.Role
		status  int
		want    string
	}{
		{"a user", []string{ada}, admin.RoleNone, 200, "proxy:ada@example.com, administer"},
		{"a header in small letters", []string{strings.ToLower(ada)}, admin.RoleNone, 200, "proxy:ada@example.com, administer"},
		{"a user of lesser role", []string{"X-Auth-Request-Email: rob@example.com"}, admin.RoleAdminister, 200, "proxy:rob@example.com, read"},
		{"the user before its group", []string{"X-Auth-Request-Email: rob@example.com", "X-Auth-Request-Groups: ops"}, admin.RoleNone, 200, "proxy:rob@example.com, read"},
		{"a group", []string{eve, "X-Auth-Request-Groups: a, sre ,b"}, admin.RoleRead, 200, "proxy:eve@example.com, operate"},
		{"the greatest group", []string{eve, "X-Auth-Request-Groups: sre,ops,sre"}, admin.RoleNone, 200, "proxy:eve@example.com, administer"},
		{"a group of lesser role", []string{eve, "X-Auth-Request-Groups: dev"}, admin.RoleOperate, 200, "proxy:eve@example.com, operate"},
		{"others", []string{eve}, admin.RoleRead, 200, "proxy:eve@example.com, read"},
		{"others, with groups", []string{eve, "X-Auth-Request-Groups: a,b"}, admin.RoleRead, 200, "proxy:eve@example.com, read"},
		{"a name with spaces", []string{"X-Auth-Request-Email:  Ada Lovelace "}, admin.RoleRead, 200, "proxy:Ada Lovelace, read"},
		{"a name that is not ASCII", []string{"X-Auth-Request-Email: Zoë"}, admin.RoleRead, 200, "proxy:Zoë, read"},
		{"the longest name", []string{"X-Auth-Request-Email: " + long}, admin.RoleRead, 200, "proxy:" + long + ", read"},
		{"a token beside the user", []string{"X-Auth-Request-Email: rob@example.com", "Authorization: Bearer " + token}, admin.RoleNone, 200, "proxy:rob@example.com, read"},

		{"an unknown user", []string{eve}, admin.RoleNone, 403, `the user \"eve@example.com\" of the proxy has no role`},
		{"another case", []string{"X-Auth-Request-Email: Ada@example.com"}, admin.RoleNone, 403, `the user \"Ada@example.com\"`},
		{"a group in another case", []string{eve, "X-Auth-Request-Groups: SRE"}, admin.RoleNone, 403, "has no role"},
		{"a part of a group", []string{eve, "X-Auth-Request-Groups: sre2,xsre,s re,/sre"}, admin.RoleNone, 403, "has no role"},
		{"a group as a user", []string{"X-Auth-Request-Email: sre"}, admin.RoleNone, 403, "has no role"},

		{"no header", nil, admin.RoleAdminister, 401, "must name one user in the header X-Auth-Request-Email, which is missing"},
		{"a token alone", []string{"Authorization: Bearer " + token}, admin.RoleAdminister, 401, "which is missing"},
		{"other headers", []string{"X-Forwarded-Email: ada@example.com", "X-Forwarded-User: ada@example.com", "X_Auth_Request_Email: ada@example.com", "X-Auth_Request-Email: ada@example.com"}, admin.RoleAdminister, 401, "which is missing"},
		{"no name", []string{"X-Auth-Request-Email:"}, admin.RoleAdminister, 401, "which is missing"},
		{"spaces", []string{"X-Auth-Request-Email: \t "}, admin.RoleAdminister, 401, "which is missing"},
		{"two headers", []string{eve, ada}, admin.RoleAdminister, 401, "is there 2 times"},
		{"two headers of one user", []string{ada, strings.ToLower(ada)}, admin.RoleAdminister, 401, "is there 2 times"},
		{"two headers, one empty", []string{ada, "X-Auth-Request-Email:"}, admin.RoleAdminister, 401, "is there 2 times"},
		{"a list", []string{"X-Auth-Request-Email: ada@example.com,eve@example.com"}, admin.RoleAdminister, 401, "has a comma"},
		{"two headers of groups", []string{eve, "X-Auth-Request-Groups: ops", "x-auth-request-groups: a"}, admin.RoleAdminister, 401, "must list the groups"},
		{"too long", []string{"X-Auth-Request-Email: " + long + "a"}, admin.RoleAdminister, 401, "has more than 250 bytes"},
		{"no text", []string{"X-Auth-Request-Email: ad\xffa"}, admin.RoleAdminister, 401, "do not print"},
		{"a tab", []string{"X-Auth-Request-Email: ada\teve"}, admin.RoleAdminister, 401, "do not print"},
		{"right to left", []string{"X-Auth-Request-Email: ada\u202eeve"}, admin.RoleAdminister, 401, "do not print"},
		{"no width", []string{"X-Auth-Request-Email: ada@example.com\u200b"}, admin.RoleAdminister, 401, "do not print"},
		{"a line", []string{"X-Auth-Request-Email: eve@example.com\r\n ada@example.com"}, admin.RoleNone, 403, "has no role"},
		{"a control character", []string{"X-Auth-Request-Email: ada\x00"}, admin.RoleAdminister, 400, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			proxy := aProxy()
			proxy.Role = test.others
			l := newListener(t, admin.Credentials{Tokens: []admin.Token{{Name: "ci", Role: admin.RoleAdminister, Hash: hash}}, Proxy: proxy})
			conn, err := l.dial(t, l.ca.Issue(t, "login", x509.Certificate{DNSNames: []string{"other.svc", proxyName}}))
			if err != nil {
				t.Fatal(err)
			}
			if status, text := askAs(t, conn, http.MethodGet, test.headers...); status != test.status || !strings.Contains(text, test.want) {
				t.Errorf("got %d %s, want %d with %s", status, text, test.status, test.want)
			}
		})
	}
}

// Without groups in the configuration the header of groups is not read.
func TestProxyWithoutGroups(t *testing.T) {
	proxy := aProxy()
	proxy.Groups, proxy.Role = nil, admin.RoleRead
	l := newListener(t, admin.Credentials{Proxy: proxy})
	conn, err := l.dial(t, l.ca.Issue(t, "login", x509.Certificate{DNSNames: []string{proxyName}}))
	if err != nil {
		t.Fatal(err)
	}
	if status, text := askAs(t, conn, http.MethodGet, "X-Auth-Request-Email: eve", "X-Auth-Request-Groups: a", "X-Auth-Request-Groups: b"); status != 200 || text != "proxy:eve, read" {
		t.Errorf("got %d %s", status, text)
	}
}

// The header of any other peer does not count. Without tokens a certificate with another name is not
// enough, so a wrong name in the configuration lets in no user of the proxy.
func TestProxyIsKnownByItsCertificate(t *testing.T) {
	const named = "X-Auth-Request-Email: ada@example.com"
	token, hash := admin.NewToken()
	tokens := []admin.Token{{Name: "ci", Role: admin.RoleRead, Hash: hash}}
	spiffe := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	const uri = "spiffe://cluster.local/ns/auth/sa/login"
	for _, test := range []struct {
		name  string
		shown x509.Certificate
		proxy string
		is    bool
	}{
		{"a DNS name", x509.Certificate{DNSNames: []string{proxyName}}, proxyName, true},
		{"a URI", x509.Certificate{URIs: []*url.URL{spiffe("spiffe://a/b"), spiffe(uri)}}, uri, true},
		{"another name", x509.Certificate{DNSNames: []string{"api.auth.svc"}}, proxyName, false},
		{"the common name", x509.Certificate{Subject: pkix.Name{CommonName: proxyName}}, proxyName, false},
		{"the common name beside another", x509.Certificate{Subject: pkix.Name{CommonName: proxyName}, DNSNames: []string{"api.auth.svc"}}, proxyName, false},
		{"a wildcard", x509.Certificate{DNSNames: []string{"*.auth.svc"}}, proxyName, false},
		{"a longer name", x509.Certificate{DNSNames: []string{"x." + proxyName, proxyName + ".example", proxyName + "."}}, proxyName, false},
		{"a mail address", x509.Certificate{EmailAddresses: []string{proxyName}}, proxyName, false},
		{"a longer URI", x509.Certificate{URIs: []*url.URL{spiffe(uri + "/x"), spiffe(uri + "?")}}, uri, false},
		{"a URI as a DNS name", x509.Certificate{DNSNames: []string{uri}}, uri, false},
		{"a DNS name as a URI", x509.Certificate{URIs: []*url.URL{spiffe(proxyName)}}, proxyName, false},
		{"no name", x509.Certificate{}, proxyName, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			proxy := aProxy()
			proxy.Certificate = test.proxy
			l := newListener(t, admin.Credentials{Proxy: proxy})
			client := l.ca.Issue(t, "client", test.shown)
			status, text := 401, "without a certificate of the name in server.admin.proxy.certificate"
			if test.is {
				status, text = 200, "proxy:ada@example.com, administer"
			}
			expect := func(what string, status int, want string, headers ...string) {
				t.Helper()
				conn, err := l.dial(t, client)
				if err != nil {
					t.Fatal(err)
				}
				if got, text := askAs(t, conn, http.MethodGet, headers...); got != status || !strings.Contains(text, want) {
					t.Errorf("%s: got %d %s, want %d with %s", what, got, text, status, want)
				}
			}
			expect("without tokens", status, text, named)
			l.access.Set(admin.Credentials{Tokens: tokens, Proxy: proxy})
			if test.is {
				expect("with tokens", status, text, named, "Authorization: Bearer "+token)
				return
			}
			expect("with tokens", 401, "a token is needed", named)
			expect("with a token", 200, "ci, read", named, "Authorization: Bearer "+token)
		})
	}
}

// A certificate of another authority, or one that has expired, opens no connection.
func TestProxyWithABadCertificate(t *testing.T) {
	l := newListener(t, admin.Credentials{Proxy: aProxy()})
	other := programtest.NewIdentity(t, t.TempDir(), "ca") // of the same name
	for name, client := range map[string]programtest.Identity{
		"another authority": other.Issue(t, "login", x509.Certificate{DNSNames: []string{proxyName}}),
		"expired":           l.ca.Issue(t, "login", x509.Certificate{DNSNames: []string{proxyName}, NotAfter: time.Now().Add(-time.Minute)}),
		"none":              {},
	} {
		conn, err := l.dial(t, client)
		if err != nil {
			continue // with TLS 1.2; else the server tells it with the first answer
		}
		if status, text := askAs(t, conn, http.MethodGet, "X-Auth-Request-Email: ada@example.com"); status != 0 {
			t.Errorf("%s: got %d %s", name, status, text)
		}
	}
}

// The header does not count over the socket and without TLS, nor with a certificate that was not
// verified.
func TestProxyHeaderElsewhere(t *testing.T) {
	access := new(admin.Access)
	access.Set(admin.Credentials{Proxy: aProxy()})
	leaf := &x509.Certificate{DNSNames: []string{proxyName}}
	shown := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
	verified := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
	issuer := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{DNSNames: []string{"other"}}, leaf}}}
	for _, test := range []struct {
		name   string
		socket bool
		state  *tls.ConnectionState
		status int
		want   string
	}{
		{"the socket", true, nil, 200, "socket, administer"},
		{"the socket, whatever is shown", true, verified, 200, "socket, administer"},
		{"no TLS", false, nil, 401, ""},
		{"not verified", false, shown, 401, ""},
		{"the name of the issuer", false, issuer, 401, ""},
		{"verified", false, verified, 200, "proxy:rob@example.com, read"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/me", nil)
		r.Header.Set(userHeader, "rob@example.com")
		r.TLS, r.Host = test.state, "localhost"
		if test.socket {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Name: "admin.sock", Net: "unix"}))
		}
		w := httptest.NewRecorder()
		whoami(access).ServeHTTP(w, r)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s: got %d %s, want %d with %s", test.name, w.Code, w.Body, test.status, test.want)
		}
	}
}

// A new configuration decides about the next request of an open connection.
func TestProxyOnAnOpenConnection(t *testing.T) {
	_, hash := admin.NewToken()
	tokens := []admin.Token{{Name: "ci", Role: admin.RoleAdminister, Hash: hash}}
	l := newListener(t, admin.Credentials{Tokens: tokens, Proxy: aProxy()})
	lesser, renamed := aProxy(), aProxy()
	lesser.Users = map[string]admin.Role{"ada@example.com": admin.RoleRead}
	renamed.Certificate = "login.example"
	for _, test := range []struct {
		name   string
		next   admin.Credentials
		status int
		want   string
	}{
		{"a lesser role", admin.Credentials{Proxy: lesser}, 200, "proxy:ada@example.com, read"},
		{"no proxy", admin.Credentials{Tokens: tokens}, 401, "a token is needed"},
		{"another proxy", admin.Credentials{Proxy: renamed}, 401, "without a certificate of the name"},
	} {
		l.access.Set(admin.Credentials{Tokens: tokens, Proxy: aProxy()})
		conn, err := l.dial(t, l.ca.Issue(t, "login", x509.Certificate{DNSNames: []string{proxyName}}))
		if err != nil {
			t.Fatal(err)
		}
		if status, text := askAs(t, conn, http.MethodGet, "X-Auth-Request-Email: ada@example.com"); status != 200 || text != "proxy:ada@example.com, administer" {
			t.Fatalf("%s: before: %d %s", test.name, status, text)
		}
		l.access.Set(test.next)
		if status, text := askAs(t, conn, http.MethodGet, "X-Auth-Request-Email: ada@example.com"); status != test.status || !strings.Contains(text, test.want) {
			t.Errorf("%s: got %d %s, want %d with %s", test.name, status, text, test.status, test.want)
		}
	}
}

// A browser sends the cookie of the proxy for a page of any site: changes by such pages are refused.
// The Host may be that of the browser or that of the Service.
func TestProxyRefusesOtherSites(t *testing.T) {
	l := newListener(t, admin.Credentials{Proxy: aProxy()})
	for _, test := range []struct {
		method  string
		headers []string
		want    int
	}{
		{http.MethodPost, []string{"Sec-Fetch-Site: same-origin", "Origin: https://limits.example.com", "Host: limits.example.com"}, 200},
		{http.MethodPost, []string{"Sec-Fetch-Site: same-origin", "Origin: https://limits.example.com"}, 200},
		{http.MethodPost, []string{"Origin: https://limits.example.com", "Host: limits.example.com"}, 200},
		{http.MethodPost, nil, 200}, // no browser
		{http.MethodGet, []string{"Sec-Fetch-Site: none", "Host: limits.example.com"}, 200},

		{http.MethodPost, []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"}, 403},
		{http.MethodPost, []string{"Sec-Fetch-Site: same-site", "Origin: https://evil.example.com", "Host: limits.example.com"}, 403},
		{http.MethodPost, []string{"Sec-Fetch-Site: cross-site", "Origin: null"}, 403},
		{http.MethodPost, []string{"Origin: https://evil.example", "Host: limits.example.com"}, 403},
		{http.MethodPost, []string{"Origin: null"}, 403},
		{http.MethodPost, []string{"Origin: https://limits.example.com"}, 403}, // an old browser, and the Host is not its own
	} {
		conn, err := l.dial(t, l.ca.Issue(t, "login", x509.Certificate{DNSNames: []string{proxyName}}))
		if err != nil {
			t.Fatal(err)
		}
		if status, text := askAs(t, conn, test.method, append(test.headers, "X-Auth-Request-Email: ada@example.com")...); status != test.want {
			t.Errorf("%s %q: got %d %s, want %d", test.method, test.headers, status, text, test.want)
		}
	}
}

// Any text in the header is refused, or is the name of one user, whole and printable.
func FuzzProxyUser(f *testing.F) {
	for _, text := range []string{"ada@example.com", "", "a,b", "\xff", "proxy:a", "socket", `"a"`, strings.Repeat("a", 251), "ada\u202e"} {
		f.Add(text)
	}
	proxy := aProxy()
	proxy.Role = admin.RoleRead
	access := new(admin.Access)
	access.Set(admin.Credentials{Proxy: proxy})
	state := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{DNSNames: []string{proxyName}}}}}
	f.Fuzz(func(t *testing.T, text string) {
		var name string
		me := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { name = limiter.PrincipalFrom(r.Context()) })
		c := admin.NewControl(admin.ControlConfig{Access: access, Explainer: new(admin.Explainer), Routes: []admin.Route{{Pattern: "GET /v1/me", Role: admin.RoleRead, Handler: me}}})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/me", nil)
		r.TLS, r.Header[userHeader] = state, []string{text}
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusOK:
			if name != admin.ProxyPrincipal+text || text == "" || strings.ContainsAny(text, ",\r\n\t") {
				t.Errorf("%q is %q", text, name)
			}
		case http.StatusUnauthorized:
			if len(text) > 0 && len(text) <= 250 && !strings.Contains(text, ",") && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz@.") == "" {
				t.Errorf("%q is refused: %s", text, w.Body)
			}
		default:
			t.Errorf("%q: %d %s", text, w.Code, w.Body)
		}
	})
}
