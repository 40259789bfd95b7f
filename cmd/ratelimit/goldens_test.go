package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/test/kit/pagetest"
)

// elsewhere are commands that pages on both stores do not run, by the beginning of their path:
// the reason, and the test that runs them.
var elsewhere = map[string]struct{ reason, test string }{
	"aggregate":        {"there is a stream only with DynamoDB", "cmd/ratelimit.TestAggregate"},
	"backup":           {"there is a file only with a data directory", "cmd/ratelimit.TestBackupAndRestore"},
	"bench":            {"its numbers differ from run to run", "cmd/ratelimit.TestBench"},
	"check":            {"it reads a file, and no store", "cmd/ratelimit.TestCommandLine"},
	"completion":       {"it is cobra's, and asks no service; completion.md has the values", "test/operate.TestPages"},
	"console":          {"it answers a browser until Ctrl-C", "cmd/ratelimit.TestConsole"},
	"context":          {"it keeps a file, and asks no service", "test/operate.TestOperate"},
	"cost":             {"it computes, and asks no service", "cmd/ratelimit.TestCost"},
	"convert":          {"it reads files, and asks no service", "cmd/ratelimit.TestConvert"},
	"help":             {"it is cobra's", "cmd/ratelimit.TestCommandLine"},
	"limitador-server": {"it starts a service", "cmd/ratelimit.TestStartsAsLimitador"},
	"migrate":          {"it reads a table of another program", "test/migrate.TestPage"},
	"restore":          {"there is a file only with a data directory", "cmd/ratelimit.TestBackupAndRestore"},
	"schema":           {"it asks no service", "cmd/ratelimit.TestSchema"},
	"serve":            {"every page starts it", "test/operate.TestPages"},
	"stack":            {"it asks AWS", "cmd/ratelimit.TestStackCommands"},
	"test":             {"it simulates, and asks no service", "test/operate.TestOperate"},
	"token":            {"its output is by chance", "cmd/ratelimit.TestAdminTokens"},
	"valkey":           {"it asks a server", "cmd/ratelimit.TestValkeyCommands"},
	"version":          {"it asks no service", "cmd/ratelimit.TestCommandLine"},
}

// seen is whether pages show a command that succeeds, and one that is refused.
type seen struct{ done, refused bool }

// Each command for a running service has golden output of the real program on both stores: of
// a run that is done, and of one that is refused, with its exit code.
func TestCommandsHaveGoldenOutput(t *testing.T) {
	root := newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	shown := map[string]map[string]*seen{"embedded": {}, "dynamodb": {}}
	for _, page := range goldenPages(t) {
		for _, command := range pagetest.Commands(page.text) {
			for _, store := range page.stores {
				note(root, shown[store], command)
			}
		}
	}
	used := map[string]bool{}
	for _, path := range leaves(root) {
		first, _, _ := strings.Cut(path, " ")
		if _, ok := elsewhere[first]; ok {
			used[first] = true
			continue
		}
		for store, commands := range shown {
			got := commands[path]
			if got == nil {
				got = new(seen)
			}
			if !got.done || !got.refused {
				t.Errorf("ratelimit %s on the store %s: a page of test/operate shows it done: %v, refused with its exit code: %v; want both, or an entry of elsewhere", path, store, got.done, got.refused)
			}
		}
	}
	for first, e := range elsewhere {
		dir, name, _ := strings.Cut(e.test, ".")
		if !used[first] || !pagetest.HasTest(t, filepath.Join("..", ".."), dir, "^"+name+"$") {
			t.Errorf("elsewhere has %s: is there such a command: %v; it names %s", first, used[first], e.test)
		}
	}
}

// goldenPage is a page whose commands a test runs on stores.
type goldenPage struct {
	text   string
	stores []string
}

// goldenPages returns the pages that test/operate runs.
func goldenPages(t *testing.T) []goldenPage {
	t.Helper()
	root := filepath.Join("..", "..")
	files, err := filepath.Glob(filepath.Join(root, "test", "operate", "testdata", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pages, %v", len(files), err)
	}
	var all []goldenPage
	add := func(path string, stores ...string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, goldenPage{string(text), stores})
	}
	for _, file := range files {
		switch prefix, _, _ := strings.Cut(filepath.Base(file), "-"); prefix {
		case "data", "embedded", "memory", "operate":
			add(file, "embedded")
		case "dynamodb":
			add(file, "dynamodb")
		default:
			add(file, "embedded", "dynamodb")
		}
	}
	add(filepath.Join(root, "docs", "operate.md"), "embedded")
	add(filepath.Join(root, "docs", "manifests.md"), "embedded")
	add(filepath.Join(root, "docs", "operations.md"), "dynamodb")
	add(filepath.Join(root, "test", "operate", "testdata", "fleet", "more.md"), "dynamodb")
	return all
}

// invoked is the program with its words in a line of a shell. The words end at a flag, a value
// or a sign of the shell.
var invoked = regexp.MustCompile(`(?:^|[ '"(])ratelimit((?: [a-z][a-z-]*)+)`)

// refusedWith is the exit code of a command that was refused.
var refusedWith = regexp.MustCompile(`(?:^|\n)[123]\n$`)

// note notes which commands a line runs, and how they end.
func note(root *cobra.Command, shown map[string]*seen, c pagetest.Command) {
	code := strings.HasSuffix(c.Line, "echo $?")
	for _, m := range invoked.FindAllStringSubmatch(c.Line, -1) {
		cmd, _, err := root.Find(strings.Fields(m[1]))
		if err != nil {
			continue // a mistake on purpose
		}
		path := pathOf(cmd)
		if shown[path] == nil {
			shown[path] = new(seen)
		}
		if code && refusedWith.MatchString(c.Output) {
			shown[path].refused = true
		} else if !strings.HasPrefix(c.Output, "ratelimit: ") {
			shown[path].done = true
		}
	}
}

// pathOf is the path of a command without the name of the program.
func pathOf(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// leaves returns the paths of the commands without commands below them, in order.
func leaves(cmd *cobra.Command) []string {
	var all []string
	for _, sub := range cmd.Commands() {
		if sub.HasSubCommands() {
			all = append(all, leaves(sub)...)
		} else if !sub.Hidden {
			all = append(all, pathOf(sub))
		}
	}
	slices.Sort(all)
	return all
}
