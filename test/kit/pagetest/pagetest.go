// Package pagetest holds pages of the documentation to the output of the commands that they
// show. It is for tests.
package pagetest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check runs the commands of a page, and fails the test unless the page shows their output. A command is a
// line that begins with "$ ", in a block of the language console. A comment "<!-- $ COMMAND -->" on a line of
// its own is a command without output. Readers do not see it: it can be a step that a reader makes by hand.
// path is from the test's folder. With update the output of this run is written into the page instead.
func Check(tb testing.TB, path string, update bool, run func(command string) string) {
	tb.Helper()
	text, err := os.ReadFile(path) // #nosec G304 -- a page that a test names
	if err != nil {
		tb.Fatal(err)
	}
	got := replay(tb, string(text), run)
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

// Command is a command of a page, with the output that the page shows.
type Command struct {
	Line   string
	Output string // whole lines
}

// Commands returns the commands that the readers of a page see.
func Commands(page string) []Command {
	var all []Command
	console := false
	for line := range strings.Lines(page) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			console = line == "```console\n"
		case console && isCommand:
			all = append(all, Command{Line: strings.TrimSpace(command)})
		case console && len(all) > 0:
			all[len(all)-1].Output += line
		}
	}
	return all
}

// replay returns a page with the output that run gives for each command. A hidden command with
// output fails the test.
func replay(tb testing.TB, page string, run func(command string) string) string {
	tb.Helper()
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
		case isHidden(line):
			hidden := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), hiddenBegin), hiddenEnd)
			out.WriteString(line)
			if text := run(hidden); text != "" {
				tb.Errorf("%s writes:\n%s", hidden, text)
			}
		case !console:
			out.WriteString(line)
		}
	}
	return out.String()
}

// A command that readers do not see begins and ends so.
const hiddenBegin, hiddenEnd = "<!-- $ ", " -->"

func isHidden(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, hiddenBegin) && strings.HasSuffix(line, hiddenEnd)
}
