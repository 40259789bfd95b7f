package config

import (
	"errors"
	"net"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// schema is the listener of administration, which asks for credentials.
func (a *Admin) schema() yamlcfg.Schema {
	var tokens []yamlcfg.Entry[AdminToken]
	return yamlcfg.Object{Keys: []yamlcfg.Key{
		key("address", "the path is relative to the working directory", adminAddress(&a.Address)),
		key("tls", "[TLS](#tls); required unless the address is a socket or loopback", yamlcfg.Confidential{Schema: a.TLS.schema()}),
		key("tokens", "tokens by caller; an address with a port needs some, or `tls.client_ca`", yamlcfg.Confidential{Schema: yamlcfg.Dict[AdminToken]{Out: &tokens, What: "a token", Name: principalName, Item: func(t *AdminToken) yamlcfg.Schema {
			return yamlcfg.Object{Needs: []string{"role", "hash"}, Keys: []yamlcfg.Key{key("role", "the role of the caller", adminRole(&t.Role)), key("hash", "the hash that `ratelimit token` prints", tokenHash(&t.Hash))}}
		}}}),
	}}.Then(func(d *yamlcfg.Decoder, v yamlcfg.Value, sound bool) {
		for _, t := range tokens {
			t.Value.Name = t.Name
			if t.Value.Hash == "" || t.Value.Role == "" {
				d.Fail(d.Find(t.Path), "needs role and hash: `ratelimit token` prints a hash")
				sound = false
			}
			a.Tokens = append(a.Tokens, t.Value)
		}
		if !sound {
			return
		}
		if err := a.Check(); err != nil {
			d.Failf(v, "%s", err)
		}
	})
}

// principalName refuses a name that the audit could not tell from another one. The error does not
// repeat the name, as it may be a token by mistake.
func principalName(name string) error {
	if name == "socket" || name[0] == '"' {
		return errors.New(`a token must not be called socket, as callers of the Unix socket are, nor begin with a quote`)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return errors.New("the name of a token must be of printable characters and spaces: it stands in logs and in the audit")
	}
	return nil
}

func adminAddress(out *string) yamlcfg.Schema {
	return yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: "^(unix:.+|off|.*:[0-9]+)?$"}, Read: func(d *yamlcfg.Decoder, v yamlcfg.Value) {
		a := Admin{Address: v.Text()}
		_, port, err := net.SplitHostPort(a.Address)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		_, socket := a.Socket()
		known := err == nil || socket || a.Address == "" || a.Address == AdminOff
		if !known || !v.Is("!!str") {
			d.Failf(v, "must be unix:PATH, off, or a host and a port such as 127.0.0.1:8082, not %s", d.Describe(v))
			return
		}
		*out = a.Address
	}}
}

func adminRole(out *AdminRole) yamlcfg.Schema {
	return yamlcfg.OneOf(out, yamlcfg.Word[AdminRole]{Text: "read", Value: AdminRead}, yamlcfg.Word[AdminRole]{Text: "operate", Value: AdminOperate}, yamlcfg.Word[AdminRole]{Text: "administer", Value: AdminAdminister})
}

var hashText = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// tokenHash is the hash of a token. A message about a wrong hash does not repeat it, as it may be
// the token itself.
func tokenHash(out *string) yamlcfg.Schema {
	return yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: hashText.String()}, Read: func(d *yamlcfg.Decoder, v yamlcfg.Value) {
		if !v.IsScalar() || !hashText.MatchString(v.Text()) {
			d.Failf(v, "must be sha256: and 64 hexadecimal digits, as `ratelimit token` prints it, and not the token itself")
			return
		}
		*out = v.Text()
	}}
}
