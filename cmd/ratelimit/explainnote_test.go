package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// An explanation by the file alone says so where a service with the file runs: stored limits can decide there.
func TestExplainNotesARunningService(t *testing.T) {
	const note = "this is the answer of the file alone"
	data := filepath.Join(t.TempDir(), "data")
	file := programtest.WriteFile(t, "c.yaml", "store: {embedded: {data: "+data+"}}\n"+strings.Replace(watched, ", rpn: 1", "", 1))
	explain := func(noted bool, args ...string) {
		t.Helper()
		code, stdout, stderr := output(t, append([]string{"explain", "shop", "user=ada"}, args...)...)
		if code != command.ExitOK || strings.Contains(stderr, note) != noted || strings.Contains(stdout, note) {
			t.Errorf("%v: exit code %d, want the note: %t\n%s%s", args, code, noted, stdout, stderr)
		}
	}
	explain(false, "--config", file)
	r := start(t, "--config", file)
	r.adminURL(t)
	explain(true, "--config", file)
	explain(true, "--config", file, "-o", "json")
	explain(false, "--live", "--config", file)
	explain(false, "--data", data)
	r.stop(command.ErrInterrupted)
	r.wait(t)
	explain(false, "--config", file)
}
