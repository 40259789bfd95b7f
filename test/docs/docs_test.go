// Package docs_test checks the documentation against the repository: the targets of
// its links and the programs of its commands must exist.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/test/kit/pagetest"
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

// Each page of docs has a link in its index, and a place in the navigation of the site. The README
// leads to the index.
func TestPagesAreInTheIndex(t *testing.T) {
	all := make(map[string]string)
	read(t, all, "README.md", "mkdocs.yml", "docs/*.md", "docs/*/*.md")
	docs := filepath.Join("..", "..", "docs")
	index, navigation := all[filepath.Join(docs, "README.md")], all[filepath.Join("..", "..", "mkdocs.yml")]
	if !strings.Contains(all[filepath.Join("..", "..", "README.md")], "(docs/README.md)") {
		t.Error("the README has no link to docs/README.md")
	}
	pages := 0
	for file := range all {
		page, err := filepath.Rel(docs, file)
		if err != nil {
			t.Fatal(err)
		}
		if page == "README.md" || strings.HasPrefix(page, "..") {
			continue
		}
		pages++
		page = filepath.ToSlash(page)
		if !strings.Contains(index, "("+page+")") {
			t.Errorf("docs/README.md has no link to %s", page)
		}
		if !strings.Contains(navigation, ": "+page+"\n") {
			t.Errorf("the navigation of mkdocs.yml has no %s", page)
		}
	}
	if pages < 20 {
		t.Errorf("pages: got %d, want more", pages)
	}
}

// figure is a number with a unit, or a fraction.
var figure = regexp.MustCompile(`\d[\d,.]*\d(?:/s| µs)?`)

// The figures that the README shows first are those of the page on benchmarks.
func TestFiguresOfTheReadme(t *testing.T) {
	all := make(map[string]string)
	read(t, all, "README.md", "docs/benchmarks.md")
	intro, _, _ := strings.Cut(all[filepath.Join("..", "..", "README.md")], "\n## ")
	benchmarks := all[filepath.Join("..", "..", "docs", "benchmarks.md")]
	found := 0
	for line := range strings.Lines(intro) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		for _, want := range figure.FindAllString(cells[2], -1) {
			found++
			if !strings.Contains(benchmarks, want) {
				t.Errorf("the README has %s, docs/benchmarks.md has not", want)
			}
		}
	}
	if found < 3 {
		t.Errorf("figures: got %d, want more", found)
	}
}

// slugs returns the anchors of a page's headings, as GitHub and the site make them.
func slugs(page string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range title.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		text := strings.ToLower(strings.TrimSpace(linkText.ReplaceAllString(m[1], "$1")))
		all[strings.ReplaceAll(notInSlug.ReplaceAllString(text, ""), " ", "-")] = true
	}
	return all
}

var (
	title     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fence     = regexp.MustCompile("(?ms)^```.*?^```$")
	linkText  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	anchor    = regexp.MustCompile(`\]\(([^)#:]*)#([^)]+)\)`)
)

// Links to a section lead to a heading, also between pages of which one is not in docs/.
func TestAnchorsExist(t *testing.T) {
	all, found := pages(t), 0
	for file, text := range all {
		for _, m := range anchor.FindAllStringSubmatch(text, -1) {
			to := file
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(file), m[1])
			}
			found++
			if !slugs(all[to])[m[2]] {
				t.Errorf("%s: %s has no section #%s", file, to, m[2])
			}
		}
	}
	if found < 50 {
		t.Errorf("links to sections: got %d, want more", found)
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
var setByGateway = map[string]bool{"listener": true, "route": true, "address": true}

// No rule that is shipped or documented is unlimited, or exempts calls, by a value that a client chooses.
func TestNoClientMakesItselfUnlimited(t *testing.T) {
	found := 0
	for file, text := range configurations(t) {
		var document any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			continue // a part of a file
		}
		eachRule(document, func(rule map[string]any) {
			match, ok := rule["match"].(map[string]any)
			if !ok || rule["unlimited"] != true && rule["exempt"] != "call" {
				return
			}
			found++
			guarded := false
			for key, value := range match {
				guarded = guarded || setByGateway[key] && value != "*"
			}
			if !guarded {
				t.Errorf("%s: a rule is unlimited, or exempts calls, by %v, and none of its keys is set by the gateway alone", file, match)
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
