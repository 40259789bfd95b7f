package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/pagetest"
)

var (
	heading = regexp.MustCompile(`(?m)^##+ `)
	// command is the first line of a command: a program that pages name.
	command = regexp.MustCompile(`(?m)^(?:\$ .*|(?:[A-Z_]+=\S+ )*(?:ratelimit|go|make|git|curl|for|sh|docker|helm|kubectl|egctl|istioctl|aws|cosign|gh|sha256sum|(?:\.cache|bin|scripts)/\S+)(?: .*)?)$`)
	// held are commands that other tests hold to the repository: targets and tests exist.
	held = regexp.MustCompile(`^(?:\$ )?(?:go test|make) `)
	// outside are programs that no test has.
	outside = regexp.MustCompile(`^(?:docker|helm|kubectl|egctl|istioctl|aws|cosign|gh) `)
	runBy   = regexp.MustCompile(`<!-- run by (\./\S+) (\w+) -->`)
)

// unrun is the mark of commands that need things that a test does not have.
const unrun = "No test runs"

// block is a block of commands or output.
type block struct {
	at   int // where it begins in its page
	text string
}

// blocks returns the blocks of a page that can have commands: those of a shell, and those of no language.
func blocks(page string) []block {
	var all []block
	at, begin, inside, shell := 0, 0, false, false
	for line := range strings.Lines(page) {
		language, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && !inside:
			inside, begin = true, at+len(line)
			shell = language == "" || language == "sh" || language == "console"
		case isFence:
			inside = false
			if shell {
				all = append(all, block{begin, page[begin:at]})
			}
		}
		at += len(line)
	}
	return all
}

// scope returns the text that marks a block of a page: the page's beginning, and the section up to
// the block.
func scope(page string, block int) string {
	intro, section := len(page), 0
	for i, at := range heading.FindAllStringIndex(page, -1) {
		if i == 0 {
			intro = at[0]
		}
		if at[0] < block {
			section = at[0]
		}
	}
	return page[:min(intro, block)] + page[section:block]
}

// unmarked returns the blocks of a page with commands that no test runs, and that do not say so. exists
// reports whether a package has a test.
func unmarked(page string, exists func(dir, test string) bool) []string {
	var all []string
	for _, b := range blocks(page) {
		marks := strings.Join(strings.Fields(scope(page, b.at)), " ")
		if strings.Contains(marks, unrun) {
			continue
		}
		ran := false
		for _, m := range runBy.FindAllStringSubmatch(marks, -1) {
			ran = ran || exists(m[1], m[2])
		}
		for _, line := range command.FindAllString(b.text, -1) {
			if !held.MatchString(line) && (!ran || outside.MatchString(line)) {
				all = append(all, line)
				break
			}
		}
	}
	return all
}

// Each command of a page is run by a test that the page names, or the page says that no test runs it.
func TestCommandsAreRunOrMarked(t *testing.T) {
	exists := func(dir, test string) bool {
		return pagetest.HasTest(t, filepath.Join("..", ".."), dir, "^"+test+"$")
	}
	for file, text := range pages(t) {
		for _, line := range unmarked(text, exists) {
			t.Errorf("%s: no test runs %q; name one by <!-- run by ./PACKAGE TEST -->, or say %q and why", file, line, unrun+" …")
		}
	}
}

func TestUnmarked(t *testing.T) {
	exists := func(dir, test string) bool { return dir == "./cmd/x" && test == "TestX" }
	const block = "\n```\nhelm install x\n```\n"
	for _, test := range []struct {
		page string
		want int
	}{
		{"# Page\n" + block, 1},
		{"# Page\n\nNo test runs these commands: they need a cluster.\n" + block + "## More\n" + block, 0},
		{"# Page\n\nNo test\nruns these commands.\n" + block, 0},
		{"# Page\n\n## One\n\nNo test runs it.\n" + block + "## Two\n" + block, 1},
		{"# Page\n" + block + "No test runs it.\n", 1},
		{"# Page\n\n<!-- run by ./cmd/x TestX -->\n" + block, 1},
		{"# Page\n\n<!-- run by ./cmd/x TestX -->\n\n```\nratelimit check\n```\n", 0},
		{"# Page\n\n<!-- run by ./cmd/x TestY -->\n" + block, 1},
		{"# Page\n\n```\ngo test ./x -run Y\nmake test\n```\n", 0},
		{"# Page\n\n```\ngo test ./x -run Y\nratelimit check\n```\n", 1},
		{"# Page\n\n```console\n$ anything\n```\n", 1},
		{"# Page\n\n```yaml\nhelm install: x\n```\n\n```\nthe text of an answer\n```\n", 0},
	} {
		if got := unmarked(test.page, exists); len(got) != test.want {
			t.Errorf("%q: got %q, want %d", test.page, got, test.want)
		}
	}
}
