package main

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// Limits of a rule come before those of all levels but that of an entity for a resource: the commands that change and
// show limits say so, where the rule can take from the entity and the resource.
func TestCommandsTellOfLimitsOfRules(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", `
limits: {system: {rpm: 60/minute}}
domains:
- domain: shop
  rules:
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: web, limits: {rpd: 100/day calendar}, consume: {rpd: 1}}
  - {name: keys, match: {key: "*"}, entity: "key/{key}", resource: web, consume: {rpm: 1}}
`))
	const note = "for resource web the rule users of domain shop has rpd 100/day calendar of its own"
	run := func(noted bool, args ...string) {
		t.Helper()
		code, stdout, stderr := output(t, append(args, "--server", r.adminURL(t))...)
		if code != command.ExitOK || strings.Contains(stdout+stderr, note) != noted {
			t.Errorf("%v: exit code %d, want the note: %t\n%s%s", args, code, noted, stdout, stderr)
		}
	}
	if _, stdout, _ := output(t, "status", "--server", r.adminURL(t)); !strings.Contains(stdout, "embedded, in memory: all of it ends with the process") {
		t.Errorf("the status is\n%s", stdout)
	}
	run(true, "set", "limits", "--entity", "user/ada", "rpd=500/day calendar", "--dry-run")
	run(true, "set", "limits", "--entity", "user/ada", "rpd=500/day calendar")
	run(false, "set", "limits", "--entity", "user/ada", "rpm=500/minute")
	run(false, "set", "limits", "--entity", "key/ada", "rpd=500/day calendar")
	run(true, "get", "limits", "--entity", "user/ada", "--effective")
	run(true, "get", "limits", "--entity", "user/ada", "--resource", "web", "--effective")
	run(false, "get", "limits", "--entity", "user/ada", "--resource", "api", "--effective")
	for _, level := range [][]string{{"--system"}, {"--resource", "web"}} {
		set := append([]string{"set", "limits"}, level...)
		run(true, append(set, "rpd=500/day calendar", "--dry-run")...)
		run(true, append(set, "rpd=500/day calendar")...)
		run(false, append(set, "rpm=500/minute")...)
		run(true, append([]string{"get", "limits", "--effective"}, level...)...)
	}
	run(false, "set", "limits", "--resource", "api", "rpd=500/day calendar", "--allow-new")
	run(true, "doctor", "--entity", "user/ada", "--resource", "web")
	run(false, "set", "limits", "--entity", "user/ada", "--resource", "web", "rpd=500/day calendar")
	run(false, "get", "limits", "--entity", "user/ada", "--resource", "web", "--effective")
	run(false, "doctor", "--entity", "user/ada", "--resource", "web")
}
