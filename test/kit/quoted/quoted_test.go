package quoted_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// failures counts the failures of a test.
type failures struct {
	testing.TB

	n int
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.n++ }

func TestRequire(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("A lease ends\n  after 5 s."), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &failures{TB: t}
	quoted.Require(f, page, "ends after 5 s", "A lease")
	if f.n != 0 {
		t.Errorf("%d failures, want none: the page says both", f.n)
	}
	quoted.Require(f, page, "ends after 6 s", "5 s.", "A bucket")
	if f.n != 2 {
		t.Errorf("%d failures, want 2: the page says one of three", f.n)
	}
}
