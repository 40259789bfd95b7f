package admin

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"unicode"
)

// No holder of a certificate can have the name of callers of the socket, or a name that forges a
// line.
func TestSubjects(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"ops", "socket", `"socket"`, "oper\nator", "\x1b[31m", "\xff", `"\xff"`, ""} {
		got := subject(&x509.Certificate{Subject: pkix.Name{CommonName: name}})
		if got == SocketPrincipal || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || got == "" {
			t.Errorf("%q is named %q", name, got)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q are both named %q", name, other, got)
		}
		seen[got] = name
	}
	if seen["ops"] != "ops" {
		t.Error("a plain name is not as it is")
	}
}
