package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/config"
)

// adminWith is a configuration of an admin listener for callers with certificates.
func adminWith(proxy string) string {
	return "server: {admin: {address: 'localhost:9000', tls: {cert: c, key: k, client_ca: a}, proxy: " + proxy + "}}\n"
}

func TestAdminProxy(t *testing.T) {
	for text, want := range map[string]config.AdminProxy{
		"{certificate: login.auth.svc, role: read}": {Certificate: "login.auth.svc", Header: "X-Auth-Request-Email", GroupsHeader: "X-Auth-Request-Groups", Role: config.AdminRead},
		"{certificate: 'spiffe://cluster.local/ns/auth/sa/login', header: X-Forwarded-User, groups_header: x-forwarded-groups, users: {ada@example.com: administer, Ada Lovelace: read}, groups: {sre: operate, '/ops': administer}}": {
			Certificate: "spiffe://cluster.local/ns/auth/sa/login", Header: "X-Forwarded-User", GroupsHeader: "x-forwarded-groups",
			Users:  map[string]config.AdminRole{"ada@example.com": config.AdminAdminister, "Ada Lovelace": config.AdminRead},
			Groups: map[string]config.AdminRole{"sre": config.AdminOperate, "/ops": config.AdminAdminister},
		},
	} {
		if diff := cmp.Diff(want, parse(t, adminWith(text)).Server.Admin.Proxy); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
	}
}

// A proxy that no request could be of, or that would let in no user, is a mistake.
func TestAdminProxiesThatAreRefused(t *testing.T) {
	long := strings.Repeat("a", 251)
	for text, want := range map[string]string{
		"{role: read}":           "needs certificate: the DNS name or the URI in the client certificate of the proxy",
		"{certificate: login.a}": "lets in no user: give role, users or groups",
		"{certificate: login.a, users: {}, groups: {}}":                           "lets in no user",
		"{certificate: '', role: read}":                                           "must not be empty",
		"{certificate: '*.auth.svc', role: read}":                                 "must be a DNS name without *, such as login.auth.svc, or a URI",
		"{certificate: 'CN=login', role: read}":                                   "must be a DNS name",
		"{certificate: 'login.auth.svc:443', role: read}":                         "must be a DNS name",
		"{certificate: 'spiffe://A B', role: read}":                               "must be a DNS name",
		"{certificate: login.a, role: admin}":                                     `must be read, operate or administer, not the text "admin"`,
		"{certificate: login.a, role: none}":                                      "must be read, operate or administer",
		"{certificate: login.a, header: X_Auth_Request_Email, role: read}":        "must be the name of a header, letters, digits and hyphens, such as X-Auth-Request-Email",
		"{certificate: login.a, header: 'X-Email: a', role: read}":                "must be the name of a header",
		"{certificate: login.a, header: '', role: read}":                          "must be the name of a header",
		"{certificate: login.a, groups_header: x-auth-request-EMAIL, role: read}": "must be another one than header",
		"{certificate: login.a, users: {'a,b': read}}":                            "the name of a user must be of printable characters but commas",
		"{certificate: login.a, users: {\"a\\u202eb\": read}}":                    "the name of a user must be of printable characters",
		"{certificate: login.a, users: {' a': read}}":                             "without spaces around it",
		"{certificate: login.a, users: {'': read}}":                               "the name of a user must not be empty",
		"{certificate: login.a, users: {" + long + ": read}}":                     "must not have more than 250 bytes",
		"{certificate: login.a, users: {a: none}}":                                "must be read, operate or administer",
		"{certificate: login.a, users: [a]}":                                      "must be",
		"{certificate: login.a, groups: {'a,b': read}}":                           "the name of a group must be without commas",
		"{certificate: login.a, groups: {'a ': read}}":                            "without spaces around it",
		"{certificate: login.a, roles: {a: read}}":                                `unknown key "roles"; did you mean "role"?`,
	} {
		_, err := config.Parse("c.yaml", []byte(adminWith(text)), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// The name of a proxy counts only in a verified certificate.
func TestAdminProxyNeedsAuthorities(t *testing.T) {
	const want = "server.admin: proxy needs tls with client_ca"
	for _, listener := range []string{"", "address: 'localhost:9000', tls: {cert: c, key: k}, ", "address: 'unix:/a', "} {
		_, err := config.Parse("c.yaml", []byte("server: {admin: {"+listener+"proxy: {certificate: a.b, role: read}}}\n"), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", listener, err, want)
		}
	}
}
