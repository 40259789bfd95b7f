package pagetest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ratelimit/ratelimit/internal/pagetest"
)

// failures counts the failures of a test.
type failures struct {
	testing.TB

	n int
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.n++ }

func TestCheck(t *testing.T) {
	const page = "# Page\n\n```console\n$ greet ada\nhello, ada\n```\n\n```sh\n$ greet bob\n```\n"
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	var f failures
	answer := "hello, ada\n"
	run := func(command string) string {
		if command != "greet ada" {
			t.Errorf("ran %q, want the command of the console alone", command)
		}
		return answer
	}
	if pagetest.Check(&f, path, false, run); f.n != 0 {
		t.Error("a page that is true fails")
	}
	answer = "hi, ada\n"
	if pagetest.Check(&f, path, false, run); f.n != 1 {
		t.Errorf("a page that is not true fails %d times, want 1", f.n)
	}
	pagetest.Check(&f, path, true, run)
	if pagetest.Check(&f, path, false, run); f.n != 1 {
		t.Error("a page that was rewritten fails")
	}
}
