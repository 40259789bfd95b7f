// Package pagetest holds pages of the documentation to the output of the commands that they
// show. It is for tests.
package pagetest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check runs the commands of a page, and fails the test unless the page shows their output. A
// command is a line that begins with "$ ", in a block of the language console. path is from
// the test's folder. With update the output of this run is written into the page instead.
func Check(tb testing.TB, path string, update bool, run func(command string) string) {
	tb.Helper()
	text, err := os.ReadFile(path) // #nosec G304 -- a page that a test names
	if err != nil {
		tb.Fatal(err)
	}
	got := replay(string(text), run)
	switch diff := cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n")); {
	case diff == "":
	case update:
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			tb.Fatal(err)
		}
	default:
		tb.Errorf("%s (-page +run; -update rewrites it):\n%s", path, diff)
	}
}

// replay returns a page with the output that run gives for each command.
func replay(page string, run func(command string) string) string {
	var out strings.Builder
	console := false
	for line := range strings.SplitAfterSeq(page, "\n") {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			console = line == "```console\n"
			out.WriteString(line)
		case console && isCommand:
			out.WriteString(line)
			out.WriteString(run(strings.TrimSpace(command)))
		case !console:
			out.WriteString(line)
		}
	}
	return out.String()
}
