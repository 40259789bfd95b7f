package config_test

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/config"
)

// Names of tokens stand in the audit. None can forge a line, or equal the name of callers of the
// socket.
func TestNamesOfTokens(t *testing.T) {
	hash := "sha256:" + strings.Repeat("ab", 32)
	for name, want := range map[string]string{
		`ci`: "", `"team a/ci"`: "", `"oper\nator"`: "printable", `"\e[31m"`: "printable", `"a\u202eb"`: "printable",
		`socket`: "must not be called socket", `"socket:ada"`: `nor begin with "socket:"`, `"proxy:ada"`: `"proxy:"`, `"table:ada"`: `or "table:"`, `proxy`: "", `'"socket"'`: "nor begin with a quote", `""`: "must not be empty",
	} {
		text := "server: {admin: {address: 'localhost:9000', tokens: {? " + name + " : {role: read, hash: '" + hash + "'}}}}\n"
		_, err := config.Parse("", []byte(text), nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", name, err, want)
		}
	}
}
