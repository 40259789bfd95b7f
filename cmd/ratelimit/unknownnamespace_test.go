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

// A read of an entity or a resource that is nowhere says so.
func TestReadsOfWhatIsNowhereAreNoted(t *testing.T) {
	ownPlace(t)
	place(t, "ratelimit.yaml", "store: {embedded: {data: data}}\n"+hundredPerDay)
	r := start(t)
	r.adminURL(t)
	asks(t, command.ExitOK, nil, "set", "entity", "user/eve")
	const entity, resource = "note: entity user/evee is neither stored nor in the configuration nor in use; did you mean user/eve?\n", "note: no rule takes from resource apii in namespace default; did you mean api?\n"
	for args, want := range map[string]string{
		"list buckets --entity user/evee": entity, "list usage --entity user/evee": entity, "get usage --entity user/evee": entity,
		"list buckets --resource apii": resource, "list usage --resource apii": resource, "get usage --resource apii": resource, "capacity apii": resource,
	} {
		asks(t, command.ExitOK, []string{want}, strings.Fields(args)...)
	}
	for _, args := range []string{"list buckets --entity user/eve", "list usage --resource api", "get usage --entity user/eve", "capacity api"} {
		if code, stdout, stderr := output(t, strings.Fields(args)...); code != command.ExitOK || stderr != "" {
			t.Errorf("%s: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

// To enable what is nowhere has no effect, and a note with the name that may be meant.
func TestEnablingNothingIsNoted(t *testing.T) {
	ownPlace(t)
	place(t, "ratelimit.yaml", hundredPerDay)
	r := start(t)
	r.adminURL(t)
	asks(t, command.ExitOK, nil, "set", "entity", "user/eve")
	asks(t, command.ExitOK, []string{"note: entity user/evee is neither stored nor in the configuration nor in use; did you mean user/eve?\n", "entity user/evee was enabled already"}, "enable", "entity", "user/evee")
	asks(t, command.ExitOK, []string{"note: no rule takes from resource apii in namespace default; did you mean api?\n"}, "enable", "resource", "apii")
	if _, stdout, stderr := output(t, "enable", "entity", "user/eve"); !strings.Contains(stdout, "was enabled already") || stderr != "" {
		t.Errorf("a stored entity: %s%s", stdout, stderr)
	}
	asks(t, command.ExitOK, nil, "disable", "entity", "user/new", "--allow-new")
	asks(t, command.ExitOK, []string{"entity user/new enabled"}, "enable", "entity", "user/new")
}
