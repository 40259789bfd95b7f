package admin

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Proxy is a peer that authenticates users, such as by OIDC, and names the user of each request in a
// header. A user has the role in Users, else the greatest of Role and the roles of its groups in
// Groups: a header of groups that is lost on the way never gives more. Names count exactly as they
// are.
type Proxy struct {
	Certificate  string          // a DNS name of its certificate, or a URI, which has "://"
	UserHeader   string          // has one user
	GroupsHeader string          // has the groups of the user, with commas between them; read if there are Groups
	Role         Role            // of users that are not in Users; RoleNone = only that of their groups
	Users        map[string]Role // by name
	Groups       map[string]Role // by name
}

// ProxyPrincipal begins the name of a user of a [Proxy], such as proxy:ada@example.com.
const ProxyPrincipal = "proxy:"

// maxProxyUser is the greatest length of the name of a user, in bytes: the audit cuts longer ones.
const maxProxyUser = limiter.MaxPrincipal - len(ProxyPrincipal)

// proxyError is why a request of the proxy has no principal.
type proxyError struct {
	status int // of the answer
	error
}

func (e proxyError) Unwrap() error { return e.error }

// unnamed returns the error of a request that does not name its user.
func unnamed(format string, args ...any) error {
	return proxyError{http.StatusUnauthorized, fmt.Errorf(format, args...)}
}

// shows reports whether a verified certificate is that of the proxy. The common name does not count:
// an authority can restrict only names of the other kinds.
func (p *Proxy) shows(c *x509.Certificate) bool {
	if !strings.Contains(p.Certificate, "://") {
		return slices.Contains(c.DNSNames, p.Certificate)
	}
	return slices.ContainsFunc(c.URIs, func(u *url.URL) bool { return u.String() == p.Certificate })
}

// principal returns the principal of a request of the proxy. Authorization does not count: it may
// have a token of another service.
func (p *Proxy) principal(header http.Header) (Principal, error) {
	user, err := onlyValue(header, p.UserHeader)
	if err == nil {
		err = checkProxyUser(user)
	}
	if err != nil {
		return Principal{}, unnamed("the proxy must name one user in the header %s, which %w", p.UserHeader, err)
	}
	role, known := p.Users[user]
	if !known {
		if role, err = p.roleOfGroups(header); err != nil {
			return Principal{}, unnamed("the proxy must list the groups of %q in one header %s, which %w", user, p.GroupsHeader, err)
		}
	}
	if role == RoleNone {
		return Principal{}, proxyError{http.StatusForbidden, fmt.Errorf("the user %q of the proxy has no role: server.admin.proxy gives roles", user)}
	}
	return Principal{Name: ProxyPrincipal + user, Role: role}, nil
}

// roleOfGroups returns the role of a user that is not in Users.
func (p *Proxy) roleOfGroups(header http.Header) (Role, error) {
	if len(p.Groups) == 0 {
		return p.Role, nil
	}
	groups, err := onlyValue(header, p.GroupsHeader)
	if err != nil {
		return RoleNone, err
	}
	greatest := p.Role
	for group := range strings.SplitSeq(groups, ",") {
		greatest = max(greatest, p.Groups[strings.TrimSpace(group)])
	}
	return greatest, nil
}

// onlyValue returns the value of a header; "" = it is absent. A second value may be of the proxy's
// client.
func onlyValue(header http.Header, name string) (string, error) {
	values := header.Values(name)
	if len(values) > 1 {
		return "", fmt.Errorf("is there %d times: it must replace that of the client", len(values))
	}
	return strings.Join(values, ""), nil
}

// checkProxyUser refuses a text that is no name of one user. A name with a comma may be two
// headers that were joined, of which one is the client's own.
func checkProxyUser(user string) error {
	switch {
	case user == "":
		return errors.New("is missing")
	case len(user) > maxProxyUser:
		return fmt.Errorf("has more than %d bytes", maxProxyUser)
	case strings.Contains(user, ","):
		return errors.New("has a comma, as two users have")
	case !utf8.ValidString(user) || strings.ContainsFunc(user, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("has characters that do not print")
	}
	return nil
}
