// Package pagetest holds pages of the documentation to the output of the commands that they
// show. It is for tests.
package pagetest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Check runs the commands of a page, and fails the test unless the page shows their output. A command is a
// line that begins with "$ ", in a block of the language console. A comment "<!-- $ COMMAND -->" on a line of
// its own is a command without output. Readers do not see it: it can be a step that a reader makes by hand.
// A command of ratelimit that only reads runs again for at most 5 s until its output is the page's. The store
// of a fleet may have what a denial gives back after the answer.
// path is from the test's folder. With update the output of this run is written into the page instead.
func Check(tb testing.TB, path string, update bool, run func(command string) string) {
	tb.Helper()
	text, err := os.ReadFile(path) // #nosec G304 -- a page that a test names
	if err != nil {
		tb.Fatal(err)
	}
	patience := settles
	if update {
		patience = 0
	}
	got := replay(tb, string(text), func(command, shown string) string {
		text := run(command)
		for began := time.Now(); text != shown && reads.MatchString(command) && time.Since(began) < patience; {
			<-time.After(settles / 50)
			text = run(command)
		}
		return text
	})
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

// settles is how long a command that reads may differ from its page.
const settles = 5 * time.Second

// reads matches a command that reads, and does nothing else.
var reads = regexp.MustCompile(`^ratelimit (__complete|explain|get|list|top) [^;|&$]*$`)

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

// replay returns a page with the output that run gives for each command, of which the page shows an output. A
// hidden command with output fails the test.
func replay(tb testing.TB, page string, run func(command, shown string) string) string {
	tb.Helper()
	var out strings.Builder
	console := false
	lines := strings.SplitAfter(page, "\n")
	for i, line := range lines {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			console = line == "```console\n"
			out.WriteString(line)
		case console && isCommand:
			out.WriteString(line)
			out.WriteString(run(strings.TrimSpace(command), shownAfter(lines[i+1:])))
		case isHidden(line):
			hidden := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), hiddenBegin), hiddenEnd)
			out.WriteString(line)
			if text := run(hidden, ""); text != "" {
				tb.Errorf("%s writes:\n%s", hidden, text)
			}
		case !console:
			out.WriteString(line)
		}
	}
	return out.String()
}

// shownAfter returns the output at the begin of the rest of a block.
func shownAfter(rest []string) string {
	end := slices.IndexFunc(rest, func(line string) bool {
		return strings.HasPrefix(line, "$ ") || strings.HasPrefix(line, "```")
	})
	return strings.Join(rest[:max(end, 0)], "")
}

// A command that readers do not see begins and ends so.
const hiddenBegin, hiddenEnd = "<!-- $ ", " -->"

func isHidden(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, hiddenBegin) && strings.HasSuffix(line, hiddenEnd)
}
