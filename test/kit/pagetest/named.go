package pagetest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// HasTest reports whether a package has a test or a fuzz test whose name matches a pattern. dir is
// the package's folder in the repository, whose root is at root.
func HasTest(tb testing.TB, root, dir, pattern string) bool {
	tb.Helper()
	name, err := regexp.Compile(pattern)
	if err != nil {
		tb.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		tb.Fatal(err)
	}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)
	for _, file := range files {
		text, err := os.ReadFile(file) // #nosec G304 -- a file of the repository
		if err != nil {
			tb.Fatal(err)
		}
		for _, m := range function.FindAllSubmatch(text, -1) {
			if name.Match(m[1]) {
				return true
			}
		}
	}
	return false
}
