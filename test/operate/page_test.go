package operate_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/pagetest"
)

// update has the pages rewritten with the output of this run.
var update = flag.Bool("update", false, "write the output of this run into the pages")

// namedBlock is a file of a page, with its name.
var namedBlock = regexp.MustCompile("(?s)`([a-z./-]+)`[^`\n]*:\n\n```(?:yaml|json)\n(.*?)```")

// yamlBlock is a file of configuration in a page.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Parts of output that differ from run to run, and how pages have them.
var (
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	goVersion = regexp.MustCompile(`go1\.[\w.]+ \w+/\w+`)
	refilled  = regexp.MustCompile(`(\d)\.00\d( ?)`) // of a balance, while the commands ran
)

// jsonLine is a line of JSON, in which protojson puts spaces by the build of a program.
var jsonLine = regexp.MustCompile(`(?m)^\{.*\}$`)

func stable(text string) string {
	text = jsonLine.ReplaceAllStringFunc(text, func(line string) string {
		var compact bytes.Buffer
		if json.Compact(&compact, []byte(line)) != nil {
			return line
		}
		return compact.String()
	})
	text = timestamp.ReplaceAllString(text, "2026-11-22T09:00:00Z")
	text = goVersion.ReplaceAllString(text, "go1.26 linux/amd64")
	return refilled.ReplaceAllStringFunc(text, func(number string) string {
		whole, _, _ := strings.Cut(number, ".")
		if strings.HasSuffix(number, " ") { // in a table
			return whole + "     "
		}
		return whole
	})
}

// The pages for users are true of a service with a data directory.
func TestOperate(t *testing.T) {
	for _, page := range []string{"operate.md", "manifests.md", "test-rules.md"} {
		t.Run(page, func(t *testing.T) { runPage(t, filepath.Join("..", "..", "docs", page), "--data", "data") })
	}
}

// What commands say, of a service in memory and of one with a data directory.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			if strings.HasPrefix(filepath.Base(page), "data-") {
				runPage(t, page, "--data", "data")
				return
			}
			t.Run("memory", func(t *testing.T) { runPage(t, page) })
			t.Run("data", func(t *testing.T) { runPage(t, page, "--data", "data") })
		})
	}
}

// runPage runs the commands of a page one after the other, against a service that is started
// with the flags.
func runPage(t *testing.T, path string, flags ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config := yamlBlock.FindSubmatch(text)
	if config == nil {
		t.Fatalf("%s has no configuration", path)
	}
	s := startService(t, string(config[1]), flags...)
	for _, block := range namedBlock.FindAllSubmatch(text, -1) {
		if err := os.WriteFile(filepath.Join(s.dir, string(block[1])), block[2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pagetest.Check(t, path, *update, func(command string) string {
		return stable(s.shell(t, command))
	})
}

// shell runs a command in the directory of the service and returns what it writes.
func (s *service) shell(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", s.local(command))
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput() // the exit code is shown by commands that end in echo $?
	if len(out) == 0 && err != nil {
		t.Errorf("%s: %v, without a word", command, err)
	}
	text := s.public(string(out))
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}
