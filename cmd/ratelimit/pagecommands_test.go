package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
)

// pageCommand is a line of a page that is a command of this program.
var pageCommand = regexp.MustCompile(`(?m)^(?:\$ )?(?:go run \./cmd/ratelimit|ratelimit) (.*)$`)

// pageCommands returns the arguments of the program's commands in blocks of a page, without redirections,
// pipes and remarks.
func pageCommands(page string) [][]string {
	var all [][]string
	end := regexp.MustCompile(`\s+(?:#|\||>|2>|<|&&).*|;.*`)
	for i, part := range strings.Split("\n"+strings.ReplaceAll(page, "\\\n", ""), "\n```") {
		if i%2 == 0 { // prose
			continue
		}
		for _, m := range pageCommand.FindAllStringSubmatch(part, -1) {
			line := end.ReplaceAllString(m[1], "")
			if !strings.ContainsAny(line, `"'$…`) && !strings.Contains(line, "...") {
				all = append(all, strings.Fields(line))
			}
		}
	}
	return all
}

// pageFiles returns the Markdown files with commands, by path from the root.
func pageFiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md", "charts/*/*.md", "terraform/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.ToSlash(strings.TrimPrefix(file, filepath.Join("..", "..")+string(filepath.Separator)))] = string(text)
		}
	}
	return all
}

// Every command of a page is one of the program, and has the flags that it shows.
func TestPagesShowCommandsOfTheProgram(t *testing.T) {
	found := 0
	for file, text := range pageFiles(t) {
		for _, args := range pageCommands(text) {
			found++
			root := newRoot()
			cmd, rest, err := root.Find(args)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err != nil || cmd == root {
				t.Errorf("%s: ratelimit %s: %v", file, strings.Join(args, " "), err)
			}
		}
	}
	if found < 100 {
		t.Errorf("commands: got %d, want more", found)
	}
}

// Commands of pages that need a file alone succeed with it: README's own, and the shipped rules.
func TestPageCommands(t *testing.T) {
	shipped, err := os.ReadFile("../../config/ratelimit.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pages, ran := pageFiles(t), 0
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for file, text := range pages {
		rules := shipped
		if m := regexp.MustCompile("(?s)\n```yaml\n(limits:.*?)```").FindStringSubmatch(text); file == "README.md" && m != nil {
			rules = []byte(m[1])
		}
		if err := os.WriteFile("ratelimit.yaml", rules, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range pageCommands(text) {
			line := strings.Join(args, " ")
			if !regexp.MustCompile(`^(?:check --config (?:ratelimit|examples)|limitador-server --validate examples|explain --config|cost\b|version$)`).MatchString(line) {
				continue
			}
			for i, arg := range args {
				if strings.HasPrefix(arg, "examples/") {
					args[i] = filepath.Join(root, arg)
				}
			}
			ran++
			if code, _, stderr := output(t, args...); code != command.ExitOK {
				t.Errorf("%s: ratelimit %s: exit code %d\n%s", file, line, code, stderr)
			}
		}
	}
	if ran < 12 {
		t.Errorf("commands that ran: got %d, want more", ran)
	}
}
