// Package docs_test holds the documentation against the repository: what it links
// to and what it tells to run must be there.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/internal/pagetest"
)

var (
	link         = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)                         // links within the repository
	goTest       = regexp.MustCompile("go test (?:-[a-z]+ )*\\./(\\S+) -run '?([^'`\\s]+)") // package, pattern
	target       = regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	rule         = regexp.MustCompile(`(?m)^([a-z-]+):`)
	commandBlock = regexp.MustCompile("(?ms)^```(?:sh|console)?\n(.*?)^```")
	yamlBlock    = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

// pages returns the Markdown files of the repository, by path from its root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	pages := make(map[string]string)
	read(t, pages, "*.md", "docs/*.md", "examples/*/*.md", "docs/*/*.md", "charts/*/*.md", "deploy/*.md", "terraform/*.md")
	if len(pages) < 5 {
		t.Fatalf("Markdown files: got %d, want more", len(pages))
	}
	return pages
}

// read adds the files of the repository that match a pattern, by path from its root.
func read(t *testing.T, all map[string]string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[file] = string(text)
		}
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	for file, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s: link to %s: %v", file, m[1], err)
			}
		}
	}
}

// Every command that shows a promise runs at least one test: `go test` is content
// with none.
func TestCommandsRunTests(t *testing.T) {
	commands := 0
	for file, text := range pages(t) {
		for _, m := range goTest.FindAllStringSubmatch(text, -1) {
			if m[2] == "^$" { // it runs benchmarks
				continue
			}
			commands++
			for pattern := range strings.SplitSeq(m[2], "|") {
				name, _, _ := strings.Cut(pattern, "/") // the rest names a subtest
				if !pagetest.HasTest(t, filepath.Join("..", ".."), m[1], name) {
					t.Errorf("%s: %s: no test in %s matches %s", file, m[0], m[1], name)
				}
			}
		}
	}
	if commands < 10 {
		t.Errorf("commands found: got %d, want more", commands)
	}
}

// commandFile is a file or directory of the repository that a command names.
var commandFile = regexp.MustCompile(`(?m)(?:^|[ =])((?:examples|charts|config|deploy|terraform)/[\w./-]+)`)

// Files of the repository that commands read are there.
func TestFilesOfCommandsExist(t *testing.T) {
	found := 0
	for page, text := range pages(t) {
		for _, block := range commandBlock.FindAllStringSubmatch(text, -1) {
			for _, m := range commandFile.FindAllStringSubmatch(block[1], -1) {
				found++
				_, err := os.Stat(filepath.Join("..", "..", m[1]))
				if err != nil {
					t.Errorf("%s: a command names %s: %v", page, m[1], err)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("files in commands: got %d, want more", found)
	}
}

// Each how-to page has a link in the README, which is the index.
func TestHowToPagesAreLinked(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	howTo, err := filepath.Glob("../../docs/how-to/*.md")
	if err != nil || len(howTo) < 8 {
		t.Fatalf("how-to pages: %v, %v", howTo, err)
	}
	for _, page := range howTo {
		if target := "(docs/how-to/" + filepath.Base(page) + ")"; !strings.Contains(string(readme), target) {
			t.Errorf("the README has no link to %s", target)
		}
	}
}

func TestMakeTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := make(map[string]bool)
	for _, m := range rule.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	for file, text := range pages(t) {
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			if !targets[m[1]] {
				t.Errorf("%s: the Makefile has no target %s", file, m[1])
			}
		}
	}
}

// setByGateway are the keys of descriptors that no client can choose, in the shipped and
// documented configurations.
var setByGateway = map[string]bool{"listener": true}

// No rule that is shipped or documented is unlimited by a value that a client chooses.
func TestNoClientMakesItselfUnlimited(t *testing.T) {
	found := 0
	for file, text := range configurations(t) {
		var document any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			continue // a part of a file
		}
		eachRule(document, func(rule map[string]any) {
			match, ok := rule["match"].(map[string]any)
			if !ok || rule["unlimited"] != true {
				return
			}
			found++
			guarded := false
			for key, value := range match {
				guarded = guarded || setByGateway[key] && value != "*"
			}
			if !guarded {
				t.Errorf("%s: a rule is unlimited by %v, and none of its keys is set by the gateway alone", file, match)
			}
		})
	}
	if found < 2 {
		t.Errorf("unlimited rules found: got %d, want more", found)
	}
}

// configurations returns the YAML of the repository that users copy: files, and parts of
// pages.
func configurations(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for page, text := range pages(t) {
		for i, m := range yamlBlock.FindAllStringSubmatch(text, -1) {
			all[page+" "+strconv.Itoa(i+1)] = m[1]
		}
	}
	read(t, all, "config/*.yaml", "examples/*/*.yaml", "examples/*/*/*.yaml")
	return all
}

// eachRule calls visit for every mapping that has a match.
func eachRule(node any, visit func(map[string]any)) {
	switch n := node.(type) {
	case map[string]any:
		if n["match"] != nil {
			visit(n)
		}
		for _, child := range n {
			eachRule(child, visit)
		}
	case []any:
		for _, child := range n {
			eachRule(child, visit)
		}
	}
}
