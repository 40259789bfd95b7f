package config

import (
	"errors"
	"net"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// adminSchema is the listener of administration, which asks for credentials.
type adminSchema struct{ out *Admin }

func (s adminSchema) decode(d *decoder, v value) {
	before := d.failures()
	var tokens []entry[AdminToken]
	s.object(&tokens).decode(d, v)
	for _, t := range tokens {
		t.value.Name = t.name
		if t.value.Hash == "" || t.value.Role == "" {
			d.fail(d.find(t.path), "needs role and hash: `ratelimit token` prints a hash")
		}
		s.out.Tokens = append(s.out.Tokens, t.value)
	}
	if d.failures() > before {
		return
	}
	if err := s.out.Check(); err != nil {
		d.failf(v, "%s", err)
	}
}

func (s adminSchema) object(tokens *[]entry[AdminToken]) object {
	return object{keys: []key{
		{"address", adminAddress(&s.out.Address)},
		{"tls", confidential{tlsSchema{&s.out.TLS}}},
		{"tokens", confidential{dict[AdminToken]{out: tokens, what: "a token", name: principalName, item: func(t *AdminToken) schema {
			return object{keys: []key{{"role", adminRole(&t.Role)}, {"hash", tokenHash(&t.Hash)}}}
		}}}},
	}}
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

func (s adminSchema) walk(path string, visit func(string)) {
	s.object(new([]entry[AdminToken])).walk(path, visit)
}

func adminAddress(out *string) schema {
	return scalar(func(d *decoder, v value) {
		a := Admin{Address: v.node.Value}
		_, port, err := net.SplitHostPort(a.Address)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		_, socket := a.Socket()
		known := err == nil || socket || a.Address == "" || a.Address == AdminOff
		if !known || v.node.Kind != yaml.ScalarNode || v.node.Tag != "!!str" {
			d.failf(v, "must be unix:PATH, off, or a host and a port such as 127.0.0.1:8082, not %s", d.describe(v.node))
			return
		}
		*out = a.Address
	})
}

func adminRole(out *AdminRole) schema {
	return oneOf(out, word[AdminRole]{"read", AdminRead}, word[AdminRole]{"operate", AdminOperate}, word[AdminRole]{"administer", AdminAdminister})
}

var hashText = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// tokenHash is the hash of a token. A message about a wrong hash does not repeat it, as it may be
// the token itself.
func tokenHash(out *string) schema {
	return scalar(func(d *decoder, v value) {
		if v.node.Kind != yaml.ScalarNode || !hashText.MatchString(v.node.Value) {
			d.failf(v, "must be sha256: and 64 hexadecimal digits, as `ratelimit token` prints it, and not the token itself")
			return
		}
		*out = v.node.Value
	})
}
