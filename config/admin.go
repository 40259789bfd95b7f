package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// Admin is the listener of administration: backup, restore, and changes of state.
type Admin struct {
	// Address is "unix:" and a path, relative to the working directory of the program,
	// host:port, or AdminOff. Without a path the socket is admin.sock in the data directory;
	// without one, in the run directory. It is there beside host:port, too. Default "".
	Address string
	TLS     TLS          // of host:port
	Tokens  []AdminToken // which callers of host:port are let in; default none
	Proxy   AdminProxy   // whose users are let in; default none
}

// AdminOff is the address that turns administration off, the socket too.
const AdminOff = "off"

// AdminToken is a token that lets a caller in.
type AdminToken struct {
	Name string // of the principal
	Role AdminRole
	Hash string // SHA-256 of the token: "sha256:" and 64 hexadecimal digits
}

// AdminRole says which requests a caller may make.
type AdminRole string

// The roles, the least first; each includes the ones before it.
const (
	AdminRead       AdminRole = "read"
	AdminOperate    AdminRole = "operate"
	AdminAdminister AdminRole = "administer"
)

// Socket returns the path of a Unix socket that Address names.
func (a *Admin) Socket() (path string, ok bool) { return strings.CutPrefix(a.Address, unixPrefix) }

// TCP returns the host and port that Address names.
func (a *Admin) TCP() (address string, ok bool) {
	_, socket := a.Socket()
	return a.Address, !socket && a.Address != "" && a.Address != AdminOff
}

// Check reports mistakes of the listener as a whole. A listener at host:port asks every caller for
// a credential, and never lets the caller send it in plain text over a network.
func (a *Admin) Check() error {
	path, socket := a.Socket()
	switch {
	case a.Proxy.Enabled() && a.TLS.ClientCA == "":
		return errors.New("proxy needs tls with client_ca: the authorities that the proxy's certificate is of")
	case socket && path == "":
		return fmt.Errorf("address %q needs a path, such as unix:/run/ratelimit/admin.sock", a.Address)
	case socket:
		return nil
	}
	if _, tcp := a.TCP(); !tcp {
		return nil
	}
	host, _, err := net.SplitHostPort(a.Address)
	switch {
	case err != nil:
		return fmt.Errorf("address is %q; it must be unix:PATH, host:port or off", a.Address)
	case len(a.Tokens) == 0 && a.TLS.ClientCA == "":
		return fmt.Errorf("at %s callers need a credential: give tokens, or tls with client_ca; or leave address out, for a Unix socket", a.Address)
	case !a.TLS.Enabled() && !IsLoopback(host):
		return fmt.Errorf("at %s tokens could be read on the network: give tls, or a loopback address such as 127.0.0.1", a.Address)
	}
	return nil
}

// IsLoopback reports whether a host, given as a name or an address, belongs to this machine alone.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// schema is the listener of administration, which asks for credentials.
func (a *Admin) schema() yamlcfg.Schema {
	var tokens []yamlcfg.Entry[AdminToken]
	return keys(
		key("address", "a path, relative to the working directory, moves the socket; an address with a port is beside it", adminAddress(&a.Address)),
		key("tls", "[TLS](#tls); required unless the address is a socket or loopback", yamlcfg.Confidential{Schema: a.TLS.schema()}),
		key("tokens", "tokens by caller; an address with a port needs some, or `tls.client_ca`", yamlcfg.Confidential{Schema: yamlcfg.Dict[AdminToken]{Out: &tokens, What: "a token", Name: principalName, Item: func(t *AdminToken) yamlcfg.Schema {
			return yamlcfg.Object{Needs: []string{"role", "hash"}, Keys: []yamlcfg.Key{key("role", "role of the caller", adminRole(&t.Role)), key("hash", "hash that `ratelimit token` prints", tokenHash(&t.Hash))}}
		}}}),
		key("proxy", "[proxy](console.md#behind-an-oidc-proxy) that logs users in", a.Proxy.schema()),
	).Then(func(n yamlcfg.Node, sound bool) {
		for _, t := range tokens {
			t.Value.Name = t.Name
			if t.Value.Hash == "" || t.Value.Role == "" {
				n.Fail(n.Find(t.Path), "needs role and hash: `ratelimit token` prints a hash")
				sound = false
			}
			a.Tokens = append(a.Tokens, t.Value)
		}
		if !sound {
			return
		}
		if err := a.Check(); err != nil {
			n.Failf("%s", err)
		}
	})
}

// principalName refuses a name that the audit could not tell from another one. The error does not
// repeat the name, as it may be a token by mistake.
func principalName(name string) error {
	if name == "socket" || strings.HasPrefix(name, "socket:") || strings.HasPrefix(name, proxyPrincipal) || strings.HasPrefix(name, "table:") || name[0] == '"' {
		return errors.New(`a token must not be called socket, nor begin with "socket:", "proxy:" or "table:", as callers of the Unix socket, users of a proxy and commands on a table do, nor begin with a quote`)
	}
	if !prints(name) {
		return errors.New("the name of a token must be of printable characters and spaces: it stands in logs and in the audit")
	}
	return nil
}

// prints reports whether a text is of printable characters and spaces.
func prints(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func adminRole(out *AdminRole) yamlcfg.Schema {
	return yamlcfg.Enum(out, AdminRead, AdminOperate, AdminAdminister)
}

func adminAddress(out *string) yamlcfg.Schema {
	return yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: "^(unix:.+|off|.*:[0-9]+)?$"}, Read: func(n yamlcfg.Node) {
		a := Admin{Address: n.Raw()}
		_, socket := a.Socket()
		known := yamlcfg.IsAddress(a.Address) || socket || a.Address == "" || a.Address == AdminOff
		if !known || !n.Is("!!str") {
			n.Failf("must be unix:PATH, off, or a host and a port such as 127.0.0.1:8082, not %s", n.Describe())
			return
		}
		*out = a.Address
	}}
}

var hashText = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// tokenHash is the hash of a token. A message about a wrong hash does not repeat it, as it may be
// the token itself.
func tokenHash(out *string) yamlcfg.Schema {
	return yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: hashText.String()}, Read: func(n yamlcfg.Node) {
		if !n.IsScalar() || !hashText.MatchString(n.Raw()) {
			n.Failf("must be sha256: and 64 hexadecimal digits, as `ratelimit token` prints it, and not the token itself")
			return
		}
		*out = n.Raw()
	}}
}
