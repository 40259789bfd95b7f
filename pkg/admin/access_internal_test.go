package admin

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// No holder of a certificate can have the name of callers of the socket, or a name that forges a
// line.
func TestSubjects(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"ops", "proxy:ada", `"proxy:ada"`, "socket", `"socket"`, "socket:root", `"socket:root"`, "oper\nator", "\x1b[31m", "\xff", `"\xff"`, ""} {
		got := subject(&x509.Certificate{Subject: pkix.Name{CommonName: name}})
		if isSocketName(got) || strings.HasPrefix(got, ProxyPrincipal) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || got == "" {
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

// A user without a name has the number.
func TestUserWithoutAName(t *testing.T) {
	var users userNames
	if got := users.of(4_294_967_294); got != "4294967294" {
		t.Errorf("got %q", got)
	}
}

// The reference of the configuration quotes the longest name of a user of a proxy.
func TestPageQuotesTheLongestUser(t *testing.T) {
	quoted.Require(t, "../../docs/configuration.md", fmt.Sprintf("printable names of at most %d bytes, without commas", maxProxyUser))
}
