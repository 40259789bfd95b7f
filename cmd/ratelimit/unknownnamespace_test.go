package main

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
)

// A read of a namespace that was never in use says so, and which may be meant. One that rules name is known before its
// first request.
func TestReadsOfAnUnknownNamespaceAreNoted(t *testing.T) {
	ownPlace(t)
	place(t, "ratelimit.yaml", strings.Replace(hundredPerDay, "- domain: shop\n", "- domain: shop\n  namespace: tenant\n", 1))
	r := start(t)
	r.adminURL(t)
	const note = `note: namespace "tennat" was never in use; did you mean tenant?`
	for _, args := range []string{"list entities", "list limits", "list buckets", "list disabled", "get limits --effective --entity user/ada", "top --once", "capacity api", "export"} {
		code, stdout, stderr := output(t, append(strings.Fields(args), "-n", "tennat")...)
		if code != command.ExitOK || !strings.Contains(stderr, note+"\n") {
			t.Errorf("%s: exit code %d, want a note\n%s%s", args, code, stdout, stderr)
		}
		if code, stdout, stderr := output(t, append(strings.Fields(args), "-n", "tenant")...); code != command.ExitOK || strings.Contains(stderr, "note") {
			t.Errorf("%s of a namespace of rules: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	asks(t, command.ExitFailure, []string{`namespace "tennat" was never in use; did you mean tenant?`}, "get", "namespace", "tennat")
	asks(t, command.ExitFailure, []string{`wrong  Limit not enforced     namespace "tennat" was never in use; did you mean tenant?`, "next: ratelimit list namespaces"}, "doctor", "-n", "tennat")
	asks(t, command.ExitFailure, nil, "doctor", "-n", "tennat", "--entity", "user/ada")
	asks(t, command.ExitOK, nil, "doctor", "-n", "tenant")
}

// What is nowhere cannot be enabled, as it cannot be disabled.
func TestEnablingNothingIsRefused(t *testing.T) {
	ownPlace(t)
	place(t, "ratelimit.yaml", hundredPerDay)
	r := start(t)
	r.adminURL(t)
	asks(t, command.ExitOK, nil, "set", "entity", "user/eve")
	asks(t, command.ExitFailure, []string{"entity user/evee is neither stored nor in the configuration nor in use; did you mean user/eve?"}, "enable", "entity", "user/evee")
	asks(t, command.ExitFailure, []string{"no rule takes from resource apii", "did you mean api?"}, "enable", "resource", "apii")
	asks(t, command.ExitOK, []string{"was enabled already"}, "enable", "entity", "user/eve")
	asks(t, command.ExitOK, nil, "disable", "entity", "user/new", "--allow-new")
	asks(t, command.ExitOK, []string{"entity user/new enabled"}, "enable", "entity", "user/new")
}
