package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// kindly has plans of entities and kinds, defaults of kinds, and rates of 0.
const kindly = `
plans:
  free: {rpm: 2/hour}
  pro: {rpm: 4/hour, exports: 3/day}
limits:
  system: {rpm: 9/hour, exports: 0/day}
  entities:
    "*": {limits: {_default_: {rpm: 1/hour}}}
    "user/*": {plan: free, limits: {admin: {rpm: 0/minute}}}
    user/ada: {plan: pro}
    key/k-1: {parent: org/acme, cascade: true}
    org/acme: {limits: {_default_: {rpm: 3/hour}}}
domains:
- domain: shop
  rules:
  - {name: users, match: {user: "*", path: "*"}, entity: "user/{user}", resource: "{path}", consume: {rpm: 1}}
  - {name: exports, match: {export: "*"}, entity: "user/{export}", resource: export, consume: {exports: 1}}
  - {name: keys, match: {key: "*"}, entity: "key/{key}", resource: web, consume: {rpm: 1}}
`

// Plans of entities and of kinds, limits of kinds and rates of 0 decide as the file and the commands say.
func TestPlansKindsAndRatesOfZero(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", kindly))
	admitted := func(want int, entries ...string) {
		t.Helper()
		all := make([]string, 0, len(entries))
		for _, e := range entries {
			key, value, _ := strings.Cut(e, "=")
			all = append(all, fmt.Sprintf(`{"key":%q,"value":%q}`, key, value))
		}
		body := `{"domain":"shop","descriptors":[{"entries":[` + strings.Join(all, ",") + `]}]}`
		for i := range want + 1 {
			if code, a := r.call(t, body); (code == 200) != (i < want) || a.DynamicMetadata["reason"] == "limit_not_configured" {
				t.Fatalf("%v: call %d: %d %+v, want %d admitted", entries, i+1, code, a, want)
			}
		}
	}
	run := func(ok bool, want string, args ...string) {
		t.Helper()
		args = append(args[:2:2], append([]string{"--server", r.adminURL(t)}, args[2:]...)...)
		code, stdout, stderr := output(t, args...)
		if (code == command.ExitOK) != ok || !strings.Contains(stdout+stderr, want) {
			t.Fatalf("%v: exit code %d\n%s%s, want %s", args, code, stdout, stderr, want)
		}
	}
	admitted(2, "user=bob", "path=web")   // the plan of the kind
	admitted(0, "user=bob", "path=admin") // a kind's limit comes before its plan
	admitted(4, "user=ada", "path=admin") // a plan of one's own comes before the kind
	admitted(0, "export=bob")             // a rate of 0
	admitted(3, "export=ada")
	admitted(1, "key=k-9") // the kind of all
	admitted(1, "key=k-1")

	run(true, "rpm: 2/hour, plan free -> 4/hour, plan pro", "set", "entity", "user/eve", "--plan", "pro")
	admitted(4, "user=eve", "path=web")
	run(false, "no plan por; there is free, pro", "set", "entity", "user/eve", "--plan", "por")
	run(true, "rpm: 2/hour, plan free -> 0/minute, entity default (stored)", "set", "limits", "--entity", "user/mallory", "rpm=0/minute")
	admitted(0, "user=mallory", "path=web")
	run(true, "rpm      2/hour  -      plan free", "get", "limits", "--effective", "--entity", "user/bob", "--resource", "web")
	run(true, "exports  0/day   -      system (file)", "get", "limits", "--effective", "--entity", "user/bob", "--resource", "web")
	run(false, "user/* is a kind of entities", "set", "limits", "--entity", "user/*", "rpm=5/hour")
	run(false, "user/* is a kind of entities", "set", "entity", "user/*", "--plan", "pro")
	run(false, "a rate of 0 admits nothing, and has neither burst nor max_debt", "set", "limits", "--entity", "user/x", "rpm=0/minute burst 5")

	// A stored field of an entity leaves what the file says about its parent.
	run(true, "created", "set", "limits", "--entity", "key/k-1", "rpm=9/hour")
	admitted(2, "key=k-1") // of the parent's 3, one is taken
	run(true, "created", "set", "entity", "key/k-1", "--name", "first key")
	admitted(0, "key=k-1")
}

// A budget that denies counts what is taken of its limit, and a settlement gives back to it.
func TestABudgetThatDenies(t *testing.T) {
	file := programtest.WriteFile(t, "c.yaml", `
limits: {resources: {llm: {usd: {rate: 5/hour, burst: 5, budget: {day: 8, deny: true}}}}}
domains:
- domain: llm
  rules:
  - {name: settle, match: {reservation_id: "*"}, settle: {usd: hits}}
  - {name: start, match: {user: "*"}, entity: "user/{user}", resource: llm, reserve: {usd: hits}}
`)
	cases := programtest.WriteFile(t, "cases.yaml", "config: "+file+`
cases:
- name: eight in a day
  steps:
  - {call: llm user=ada, repeat: 5, expect: allowed}
  - {call: llm user=ada, expect: {answer: denied, limit: usd}}
  - {advance: 1h, call: llm user=ada, repeat: 3, expect: allowed}
  - {call: llm user=ada, expect: {answer: denied, limit: usd.day, retry_after: 23h}}
  - call: {domain: llm, descriptors: [{entries: [{key: reservation_id, value: "${reservation}"}], hits_addend: 0}]}
    expect: allowed
  - {call: llm user=ada, expect: allowed}
  - {call: llm user=ada, expect: {answer: denied, limit: usd.day}}
  - {advance: 23h, call: llm user=ada, repeat: 5, expect: allowed}
`)
	if code, stdout, stderr := output(t, "test", cases); code != command.ExitOK {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	r := start(t, "--config", file)
	code, stdout, stderr := output(t, "set", "limits", "--server", r.adminURL(t), "--entity", "user/eve", "--resource", "llm", "usd.day=20/day calendar")
	if want := "usd.day: 0.000008 USD/day calendar, resource (file) -> 0.00002 USD/day calendar, entity (stored)"; code != command.ExitOK || !strings.Contains(stdout, want) {
		t.Errorf("an exception from a budget: exit code %d\n%s%s", code, stdout, stderr)
	}
}
