package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// A namespace that denies each request needs a person: the status and the doctor say why, and the next step, once.
func TestAClosedNamespaceNeedsAPerson(t *testing.T) {
	ownPlace(t)
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", hundredPerDay))
	r.adminURL(t)
	r.ask(t, "ada")
	for _, step := range []struct{ change, what, next string }{
		{"disable namespace default", "disabled", "ratelimit enable namespace default"},
		{"delete namespace default --yes", "deleted", "ratelimit recover namespace default"},
		{"purge namespace default --yes", "purged", "ratelimit create namespace default"},
	} {
		asks(t, command.ExitOK, nil, strings.Fields(step.change)...)
		if code, _ := r.ask(t, "ada"); code != http.StatusTooManyRequests {
			t.Errorf("after %s: %d, this test is about denials", step.change, code)
		}
		denied := "the namespace default is " + step.what + ": each of its requests is denied"
		for _, args := range [][]string{{"status"}, {"doctor"}, {"doctor", "--entity", "user/ada"}} {
			code, stdout, stderr := output(t, args...)
			if code != command.ExitFailure || strings.Count(stdout, denied) != 1 || !strings.Contains(stdout, "next: "+step.next+"\n") {
				t.Errorf("%v: exit code %d, want %q and %q once\n%s%s", args, code, denied, step.next, stdout, stderr)
			}
		}
	}
	asks(t, command.ExitOK, nil, "create", "namespace", "default")
	asks(t, command.ExitOK, nil, "enable", "namespace", "default")
	asks(t, command.ExitOK, []string{"nothing needs a person"}, "status")
	asks(t, command.ExitOK, nil, "create", "namespace", "tenant")
	asks(t, command.ExitOK, nil, "delete", "namespace", "tenant", "--yes") // which no rule takes from
	asks(t, command.ExitOK, nil, "status")
	asks(t, command.ExitFailure, []string{"the namespace tenant is deleted"}, "doctor", "-n", "tenant")
}
