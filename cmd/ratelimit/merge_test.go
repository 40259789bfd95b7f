package main

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// merging has limits of each level, a rule on a plan, and one with a limit of its own.
const merging = `
limits:
  system: {rpm: 4/hour, tpm: 100/hour}
  resources: {gpt-4: {rpm: 2/hour}}
  entities:
    key/k-1: {parent: org/acme, cascade: true}
    org/acme: {limits: {_default_: {rpm: 50/hour}}}
plans: {free: {rpm: 1/hour}}
domains:
- domain: shop
  rules:
  - {name: keys, match: {key: "*", model: "*"}, entity: "key/{key}", resource: "{model}", consume: {rpm: 1, tpm: 1}}
  - {name: plan, match: {user: "*"}, entity: "user/{user}", resource: web, limits: free, consume: {rpm: 1, tpm: 1}}
  - {name: own, match: {upload: "*"}, entity: "upload/{upload}", resource: web, limits: {uploads: 1/hour}, consume: {uploads: 1, rpm: 1}}
`

// A change of one limit at any level leaves each other limit as it was. Each step names the calls of a
// descriptor that are admitted.
func TestAChangeOfOneLimitLeavesTheOthers(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", merging))
	admitted := func(want int, entries ...string) {
		t.Helper()
		all := make([]string, 0, len(entries))
		for _, e := range entries {
			key, value, _ := strings.Cut(e, "=")
			all = append(all, `{"key":"`+key+`","value":"`+value+`"}`)
		}
		body := `{"domain":"shop","descriptors":[{"entries":[` + strings.Join(all, ",") + `]}]}`
		for i := range want + 1 {
			if code, a := r.call(t, body); (code == 200) != (i < want) || a.DynamicMetadata["reason"] == "limit_not_configured" {
				t.Fatalf("%v: call %d: %d %+v, want %d admitted", entries, i+1, code, a, want)
			}
		}
	}
	set := func(want string, args ...string) {
		t.Helper()
		code, stdout, stderr := output(t, append([]string{"set", "limits", "--server", r.adminURL(t)}, args...)...)
		if code != command.ExitOK || !strings.Contains(stdout, want) {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	admitted(2, "key=before", "model=gpt-4")
	set("  rpm: 4/hour, system (file) -> 3/hour, entity default (stored)\n  tpm: 100/hour, system (file)\n", "--entity", "key/k-9", "rpm=3/hour")
	admitted(3, "key=k-9", "model=gpt-4") // an exception of a customer, and tpm is still there
	set("  rpm: 2/hour, resource (file) -> 5/hour, resource (stored)\n  tpm: 100/hour, system (file)\n", "--resource", "gpt-4", "rpm=5/hour")
	admitted(5, "key=after", "model=gpt-4")
	admitted(5, "key=k-1", "model=gpt-4") // with a parent
	set("  rpm: 4/hour, system (file) -> 6/hour, system (stored)\n", "--system", "rpm=6/hour")
	admitted(6, "key=after", "model=other")
	admitted(1, "user=plain")
	set("", "--entity", "user/vip", "rpm=7/hour") // an exception of a customer on a plan
	admitted(7, "user=vip")
	admitted(1, "upload=plain") // rpm is that of the level
	set("", "--entity", "upload/vip", "--resource", "web", "uploads=2/hour")
	admitted(2, "upload=vip")
	set("  tpm: 100/hour, system (file) -> none\n", "--entity", "key/alone", "--inherit=false", "rpm=1/hour", "--dry-run")
	set("", "--entity", "key/alone", "--inherit=false", "rpm=1/hour")
	for _, list := range [][]string{{"get", "limits", "--entity", "key/alone"}, {"list", "limits", "-o", "wide"}} {
		_, stdout, _ := output(t, append(list, "--server", r.adminURL(t))...)
		if head := "RATE    BURST  INHERIT"; !strings.Contains(stdout, head) || !strings.Contains(stdout, "1/hour  -      false") {
			t.Errorf("%v does not show that the level stands alone:\n%s", list, stdout)
		}
	}
	code, _, stderr := output(t, "set", "limits", "--server", r.adminURL(t), "--entity", "key/k-1", "rpn=5/hour")
	if code == command.ExitOK || !strings.Contains(stderr, "no level, plan or rule has a limit rpn; there is rpm, tpm, uploads") {
		t.Errorf("a name that nothing has: exit code %d\n%s", code, stderr)
	}
	set("rpn: none -> 5/hour", "--entity", "key/k-1", "rpn=5/hour", "--allow-new")
	code, stdout, stderr := output(t, "get", "limits", "--server", r.adminURL(t), "--effective", "--entity", "key/k-9", "--resource", "gpt-4")
	if want := "rpm    3/hour    -      entity default (stored)\ntpm    100/hour  -      system (file)\n"; code != command.ExitOK || !strings.Contains(stdout, want) {
		t.Errorf("the limits that decide: exit code %d\n%s%s, want %s", code, stdout, stderr, want)
	}
}
