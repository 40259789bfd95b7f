package main

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// The deletion of a parent names its children: they go on to take from it, under less specific limits.
func TestADeletedParentIsNoted(t *testing.T) {
	service := start(t, "--config", programtest.WriteFile(t, "c.yaml", programtest.TwoPerMinute))
	do := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := output(t, append(args, "--server", service.adminURL(t))...)
		if code != command.ExitOK {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
		return stderr
	}
	do("set", "entity", "org/acme")
	for _, id := range []string{"user/a", "user/b", "user/c", "user/d"} {
		do("set", "entity", id, "--parent", "org/acme", "--cascade")
	}
	const note = "note: it still is the parent of user/a, user/b, user/c, …: those that cascade take from it under the limits of the resource or of the system\n"
	if got := do("delete", "entity", "org/acme", "--yes"); !strings.Contains(got, note) {
		t.Errorf("got %q, want %q", got, note)
	}
	if got := do("delete", "entity", "user/d", "--yes"); strings.Contains(got, "parent") {
		t.Errorf("an entity without children: %q", got)
	}
}
