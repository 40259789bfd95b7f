package envoytest_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// yamlBlock is a block of YAML in a page.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// withAccessLog returns a copy of an Envoy file with the access log of docs/how-to/observe.md,
// which is written to a file.
func withAccessLog(t *testing.T, envoyFile, log string) string {
	t.Helper()
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "how-to", "observe.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := yamlBlock.FindSubmatch(page)
	if block == nil || !strings.Contains(string(block[1]), "path: /dev/stdout\n") {
		t.Fatal("the page has no access log to the standard output")
	}
	file, err := os.ReadFile(envoyFile)
	if err != nil {
		t.Fatal(err)
	}
	const indent = "          "
	before, after, ok := strings.Cut(string(file), indent+"http_filters:\n")
	if !ok {
		t.Fatalf("%s has no http_filters", envoyFile)
	}
	var text strings.Builder
	text.WriteString(before)
	for line := range strings.Lines(strings.ReplaceAll(string(block[1]), "/dev/stdout", log)) {
		text.WriteString(indent + line)
	}
	text.WriteString(indent + "http_filters:\n" + after)
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The access log of the page has a line for each denied request, and none for others.
func TestAccessLog(t *testing.T) {
	envoytest.Need(t)
	log := filepath.Join(t.TempDir(), "access.log")
	envoy, _ := startAll(t, withAccessLog(t, example(t, "basic.yaml"), log), example(t, "ratelimit.yaml"))
	for code := http.StatusOK; code == http.StatusOK; {
		code = envoy.Get(t, "/path?secret=1", apiKey("alice")).Code
	}
	var lines []string
	envoytest.Await(t, "a line of the access log", func() error {
		text, err := os.ReadFile(log)
		lines = strings.Split(strings.TrimSpace(string(text)), "\n")
		if err == nil && lines[0] == "" {
			return errors.New("no line yet")
		}
		return err
	})
	if len(lines) != 1 {
		t.Fatalf("got %d lines, want 1: %q", len(lines), lines)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil {
		t.Fatal(err)
	}
	wait, _ := got["retry_after"].(float64)
	if wait < 1 || wait > 2 {
		t.Errorf("retry_after: got %v, want 1 or 2", got["retry_after"])
	}
	delete(got, "retry_after")
	delete(got, "time")
	want := map[string]any{
		"method": "GET", "path": "/path", "status": 429.0, "flags": "RL", "policy": nil,
		"reason": "limit_exhausted", "domain": "basic", "rule": "each-key", "entity": "key/alice", "resource": "http", "limit": "requests", "remaining": 0.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
