package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// AdminProxy is a proxy that authenticates users, and names the user of each request in a header. A
// user has the role in Users, else the greatest of Role and the roles of its groups in Groups.
type AdminProxy struct {
	Certificate  string               // DNS name or URI of its client certificate; "" = there is no proxy
	Header       string               // has the user; default X-Auth-Request-Email
	GroupsHeader string               // has the user's groups, with commas between them; default X-Auth-Request-Groups
	Role         AdminRole            // of users that are not in Users; "" = only that of their groups
	Users        map[string]AdminRole // by name; nil = none
	Groups       map[string]AdminRole // by name; nil = none
}

// proxyPrincipal begins the name of a user of the proxy in the audit.
const proxyPrincipal = "proxy:"

// Enabled reports whether there is a proxy.
func (p *AdminProxy) Enabled() bool { return p.Certificate != "" }

func (p *AdminProxy) schema() yamlcfg.Schema {
	var users, groups []yamlcfg.Entry[AdminRole]
	return yamlcfg.Object{Title: "server.admin.proxy", Needs: []string{"certificate"}, Missing: "needs certificate: the DNS name or the URI in the client certificate of the proxy", Keys: []yamlcfg.Key{
		key("certificate", "DNS name or URI of the proxy's client certificate, exactly; needs `tls.client_ca`", certificateName(&p.Certificate)),
		key("header", "header with the user", proxyHeader(&p.Header)),
		key("groups_header", "header with the user's groups, separated by commas", proxyHeader(&p.GroupsHeader)),
		key("role", "role of users outside `users`; without it they need a group", adminRole(&p.Role)),
		key("users", "roles by user", yamlcfg.Dict[AdminRole]{Out: &users, What: "a user", Name: proxyUser, Item: adminRole}),
		key("groups", "roles by group, for users outside `users`: the greatest of these and `role` counts", yamlcfg.Dict[AdminRole]{Out: &groups, What: "a group", Name: proxyGroup, Item: adminRole}),
	}}.Then(func(n yamlcfg.Node, sound bool) {
		p.Users, p.Groups = rolesByName(users), rolesByName(groups)
		switch {
		case !sound || !p.Enabled():
		case p.Role == "" && len(users) == 0 && len(groups) == 0:
			n.Failf("lets in no user: give role, users or groups")
		case strings.EqualFold(p.Header, p.GroupsHeader):
			n.FailAt("groups_header", "must be another one than header, which has the user")
		}
	})
}

func rolesByName(entries []yamlcfg.Entry[AdminRole]) map[string]AdminRole {
	if len(entries) == 0 {
		return nil
	}
	roles := make(map[string]AdminRole, len(entries))
	for _, e := range entries {
		roles[e.Name] = e.Value
	}
	return roles
}

// hostText is a DNS name as certificates have it.
var hostText = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?)*$`)

// certificateName is a DNS name or a URI that stands in a certificate. A wildcard could be of several
// peers.
func certificateName(out *string) yamlcfg.Schema {
	return yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: "."}, Read: func(n yamlcfg.Node) {
		var name string
		yamlcfg.Name(&name).Decode(n)
		if name == "" {
			return
		}
		u, err := url.Parse(name)
		isURI := err == nil && u.Scheme != "" && strings.Contains(name, "://") && u.String() == name
		if !isURI && !hostText.MatchString(name) {
			n.Failf("must be a DNS name without *, such as login.auth.svc, or a URI, such as spiffe://cluster.local/ns/auth/sa/login, not %s", n.Describe())
			return
		}
		*out = name
	}}
}

// headerText has no underscore: servers on the way may take it for a hyphen.
var headerText = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?$`)

func proxyHeader(out *string) yamlcfg.Schema {
	return yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: headerText.String(), Default: *out}, Read: func(n yamlcfg.Node) {
		if !n.Is("!!str") || !headerText.MatchString(n.Raw()) {
			n.Failf("must be the name of a header, letters, digits and hyphens, such as %s, not %s", *out, n.Describe())
			return
		}
		*out = n.Raw()
	}}
}

// proxyUser refuses a name that no user of the proxy can have.
func proxyUser(name string) error {
	const most = limiter.MaxPrincipal - len(proxyPrincipal)
	if !prints(name) || strings.Contains(name, ",") || strings.TrimSpace(name) != name {
		return errors.New("the name of a user must be of printable characters but commas, without spaces around it: others are refused in the header")
	}
	if len(name) > most {
		return fmt.Errorf("the name of a user must not have more than %d bytes", most)
	}
	return nil
}

// proxyGroup refuses a name that no group in the header can have.
func proxyGroup(name string) error {
	if strings.Contains(name, ",") || strings.TrimSpace(name) != name {
		return errors.New("the name of a group must be without commas, and without spaces around it: in the header they stand between groups")
	}
	return nil
}
