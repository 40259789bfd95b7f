// Package quoted holds pages of the documentation to the constants that they quote. It is for
// tests.
package quoted

import (
	"os"
	"strings"
	"testing"
)

// Require fails the test unless the page, a path from the test's folder, has each of the
// quotes. Line breaks and indentation of the page count as one space.
func Require(tb testing.TB, page string, quotes ...string) {
	tb.Helper()
	text, err := os.ReadFile(page) // #nosec G304 -- a page that a test names
	if err != nil {
		tb.Fatal(err)
	}
	line := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range quotes {
		if !strings.Contains(line, want) {
			tb.Errorf("%s does not say %q", page, want)
		}
	}
}
