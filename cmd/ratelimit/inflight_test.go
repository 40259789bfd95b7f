package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// Limits in flight and shadow limits are stored, shown, explained and applied as others are, and decide so.
func TestLimitsInFlightAndShadowLimits(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", `
limits: {system: {slots: {in_flight: 2, max_time: 10m}}}
domains:
- domain: jobs
  rules:
  - {name: done, match: {reservation_id: "*"}, end: true}
  - {name: start, match: {user: "*"}, entity: "user/{user}", resource: jobs, consume: {slots: 1}}
`))
	run := func(want string, args ...string) {
		t.Helper()
		args = append(args[:1:1], append([]string{"--server", r.adminURL(t)}, args[1:]...)...)
		code, stdout, stderr := output(t, args...)
		if code != command.ExitOK || !strings.Contains(strings.Join(strings.Fields(stdout+stderr), " "), want) {
			t.Fatalf("%v: exit code %d\n%s%s, want %s", args, code, stdout, stderr, want)
		}
	}
	call := func(key, value string) *rlsAnswer {
		t.Helper()
		_, a := r.call(t, fmt.Sprintf(`{"domain":"jobs","descriptors":[{"entries":[{"key":%q,"value":%q}]}]}`, key, value))
		return a
	}
	begin := func(user string, admitted int) (id string) {
		t.Helper()
		for i := range admitted + 1 {
			a := call("user", user)
			got, _ := a.DynamicMetadata["reservation_id"].(string)
			if (got != "") != (i < admitted) {
				t.Fatalf("%s: request %d has the reservation %q, want %d in flight", user, i+1, got, admitted)
			}
			if got != "" {
				id = got
			}
		}
		return id
	}
	id := begin("ada", 2)
	run("slots: 2 in flight 10m, system (file) -> 3 in flight 10m, entity default (stored)", "set", "limits", "--entity", "user/ada", "slots=3 in flight 10m")
	begin("ada", 1) // what is in flight stays
	run("slots 3 in flight 10m - entity default (stored)", "get", "limits", "--entity", "user/ada", "--resource", "jobs", "--effective")
	run("user/ada jobs slots 3 in flight 10m entity default (stored) take 1 0 false", "explain", "--live", "jobs", "user=ada")
	run("passes when one in flight ends, if no other request", "explain", "--live", "jobs", "user=ada")
	call("reservation_id", id)
	begin("ada", 1)
	run("note: limit slots: requests that still run do not count any more, and the end of each frees the place of another one",
		"reset", "bucket", "--entity", "user/ada", "--resource", "jobs")

	run("slots.shadow: none -> 1 in flight 10m, system (stored)", "set", "limits", "--system", "--shadow", "slots=1 in flight 10m")
	begin("eve", 2)
	run("user/eve jobs slots.shadow 1 1", "top", "--by", "shadow", "--once")
	run("shadow limits would deny", "explain", "--live", "jobs", "user=eve")
	run("deleted", "set", "limits", "--system", "--shadow", "--remove", "slots")

	manifest := programtest.WriteFile(t, "m.yaml", "manifest: m\nlimits: {entities: {user/bob: {limits: {_default_: {slots: {in_flight: 1, max_time: 10m}, slots.shadow: 5 in flight 10m}}}}}\n")
	run("2 created, 0 unchanged", "apply", "-f", manifest)
	run("2 unchanged", "apply", "-f", manifest)
	begin("bob", 1)
}
