package envoytest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// rate finds the rates of a rules file.
var rate = regexp.MustCompile(`\b(\d+)/(?:second|minute|hour)\b`)

// WithoutRefill returns a copy of a rules file whose buckets hold as many tokens, and
// refill one a day: none while a test runs.
func WithoutRefill(tb testing.TB, file string) string {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if !rate.Match(text) {
		tb.Fatalf("%s: has no rate to change", file)
	}
	path := filepath.Join(tb.TempDir(), filepath.Base(file))
	if err := os.WriteFile(path, rate.ReplaceAll(text, []byte("{rate: 1/day, burst: $1}")), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}
