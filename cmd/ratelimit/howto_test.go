package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// Every command of the how-to pages succeeds, on a file in the working directory and a running
// service.
func TestHowToCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/how-to/*.md")
	if err != nil || len(pages) < 4 {
		t.Fatalf("pages: %v, %v", pages, err)
	}
	texts := map[string]string{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "```console\n") { // those are run with their output, in test/migrate
			texts[filepath.Base(page)] = runnable(string(text))
		}
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("ratelimit.yaml", []byte(programtest.TwoPerMinute), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--config", "ratelimit.yaml")
	const address = "http://127.0.0.1:8080"
	ran := 0
	for page, text := range texts {
		for _, block := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```").FindAllStringSubmatch(text, -1) {
			if block[1] != "" { // it has a language: no commands
				continue
			}
			for line := range strings.SplitSeq(strings.TrimSpace(block[2]), "\n") {
				ran++
				typed, _, _ := strings.Cut(line, " > ")
				if path, ok := strings.CutPrefix(typed, "curl -s "+address); ok {
					if code, body := r.get(t, path); code != http.StatusOK {
						t.Errorf("%s: %s: %d %s", page, line, code, body)
					}
					continue
				}
				args := strings.Fields(strings.ReplaceAll(typed, address, "http://"+r.http))
				if code, _, stderr := output(t, args[1:]...); args[0] != "ratelimit" || code != command.ExitOK {
					t.Errorf("%s: %s: exit code %d\n%s", page, line, code, stderr)
				}
			}
		}
	}
	if ran < 7 {
		t.Errorf("commands: %d, want more", ran)
	}
}

// runnable returns a page without the sections that are marked as not run by a test. A mark at the
// beginning of a page applies to all of it.
func runnable(page string) string {
	const mark = "No test runs these commands"
	sections := strings.Split(page, "\n## ")
	if strings.Contains(sections[0], mark) {
		return ""
	}
	return strings.Join(slices.DeleteFunc(sections, func(s string) bool { return strings.Contains(s, mark) }), "\n## ")
}
