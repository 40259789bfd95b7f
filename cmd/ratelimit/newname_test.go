package main

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// listed has a rule for listed resources.
const listed = `
limits:
  system: {rpm: 60/minute}
  entities: {org/acme: {limits: {_default_: {rpm: 90/minute}}}}
domains:
- domain: shop
  resources: [gpt-4, "claude-*"]
  rules:
  - {name: users, match: {user: "*", model: "*"}, entity: "user/{user}", resource: "{model}", consume: {rpm: 1}}
`

// free has a rule for any resource.
const free = `
limits:
  system: {rpm: 60/minute}
  resources: {gpt-4: {rpm: 30/minute}}
domains:
- domain: shop
  rules:
  - {name: users, match: {user: "*", model: "*"}, entity: "user/{user}", resource: "{model}", consume: {rpm: 1}}
`

// A name that is nowhere is refused with the one that may be meant, changes nothing, and is allowed with --allow-new.
func TestMisspelledNamesAreRefused(t *testing.T) {
	services := map[string]*running{"listed": start(t, "--config", programtest.WriteFile(t, "c.yaml", listed)), "free": start(t, "--config", programtest.WriteFile(t, "c.yaml", free))}
	run := func(of, line string) (int, string) {
		code, stdout, stderr := output(t, append(strings.Fields(line), "--server", services[of].adminURL(t))...)
		return code, stdout + stderr
	}
	for _, test := range []struct{ of, line, want string }{
		{"listed", "disable entity user/ada -n defaultt", "namespace defaultt was never in use; did you mean default? A new name needs --allow-new"},
		{"listed", "enable entity user/ada -n tenant", "namespace tenant was never in use: correct the name, or allow a new one (--allow-new"},
		{"listed", "set limits --system rpm=1/minute -n defaultt", "namespace defaultt was never in use"},
		{"listed", "set entity user/ada -n defaultt", "namespace defaultt was never in use"},
		{"listed", "disable namespace defaultt", "namespace defaultt was never in use"},
		{"listed", "disable entity org/acmee", "entity org/acmee is neither stored nor in the configuration nor in use; did you mean org/acme?"},
		{"listed", "disable entity nobody", "entity nobody is neither stored nor in the configuration nor in use: correct"},
		{"listed", "set entity user/ada --parent org/acmee", "the parent org/acmee is neither stored nor in the configuration nor in use; did you mean org/acme?"},
		{"listed", "set limits --entity org/acm rpm=1/minute", "entity org/acm is new; did you mean org/acme?"},
		{"listed", "set limits --resource gpt4 rpm=1/minute", "no rule takes from resource gpt4 in namespace default; did you mean gpt-4?"},
		{"listed", "disable resource llama", "no rule takes from resource llama in namespace default: correct"},
		{"free", "set limits --resource gpt4 rpm=1/minute", "resource gpt4 is new; did you mean gpt-4?"},
		{"free", "set limits --entity user/ada --resource GPT-4 rpm=1/minute", "resource GPT-4 is new; did you mean gpt-4?"},
	} {
		if code, text := run(test.of, test.line+" --dry-run"); code != command.ExitFailure || !strings.Contains(text, test.want) {
			t.Errorf("%s: exit code %d, %s", test.line, code, text)
		}
		if code, text := run(test.of, test.line); code != command.ExitFailure || !strings.Contains(text, test.want) {
			t.Errorf("%s: exit code %d, %s", test.line, code, text)
		}
	}
	for of := range services {
		for _, list := range []string{"list entities", "list limits", "list disabled"} {
			if _, text := run(of, list); strings.Count(text, "\n") != 1 {
				t.Errorf("%s after refusals: %s", list, text)
			}
		}
		if _, text := run(of, "list namespaces"); strings.Contains(text, "defaultt") || strings.Contains(text, "tenant") {
			t.Errorf("namespaces after refusals: %s", text)
		}
	}
	for id, want := range map[string]string{"org/acmee": "neither stored nor in the configuration nor in use; did you mean org/acme?\n", "org/acme": "entity org/acme is not stored: a parent"} {
		if _, text := run("listed", "doctor --entity "+id); !strings.Contains(text, want) {
			t.Errorf("doctor of %s: %s", id, text)
		}
	}
	for _, line := range []string{
		"set limits --resource claude-2 rpm=1/minute",
		"set limits --entity user/new --resource gpt-4 rpm=1/minute",
		"disable entity org/acme",
		"set entity user/ada --parent org/acme",
		"set entity user/ada --name Ada", // the parent stays
		"disable entity user/ada",
		"disable entity nobody --allow-new",
		"enable entity nobody",
		"set entity user/bob --parent org/other --allow-new",
		"disable resource llama --allow-new",
		"set limits --entity org/acm rpm=1/minute --allow-new",
		"disable entity user/ada -n tenant --allow-new",
		"enable entity user/ada -n tenant",
		"create namespace other",
		"set limits --system rpm=1/minute -n other",
	} {
		if code, text := run("listed", line); code != command.ExitOK {
			t.Errorf("%s: exit code %d, %s", line, code, text)
		}
	}
	if code, text := run("free", "set limits --resource gpt-5 rpm=1/minute"); code != command.ExitOK {
		t.Errorf("a resource of which the digits differ: %s", text)
	}
}

// A manifest knows its own names, and a misspelled one is refused before anything changes.
func TestManifestsKnowTheirOwnNames(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", listed))
	apply := func(text string, args ...string) (int, string) {
		code, stdout, stderr := output(t, append([]string{"apply", "-f", programtest.WriteFile(t, "m.yaml", text), "--server", r.adminURL(t)}, args...)...)
		return code, stdout + stderr
	}
	const family = "manifest: m\nlimits: {entities: {org/new: {name: New}, key/a: {parent: org/new, limits: {_default_: {rpm: 5/minute}}}, key/b: {parent: org/new}}}\n"
	for _, test := range []struct {
		text string
		args []string
		code int
		want string
	}{
		{family, []string{"-n", "defaultt"}, command.ExitFailure, "namespace defaultt was never in use"},
		{strings.Replace(family, "key/b: {parent: org/new}", "key/b: {parent: org/nwe}", 1), nil, command.ExitFailure, "the parent org/nwe is neither"},
		{"limits: {resources: {gpt4: {rpm: 5/minute}}}", nil, command.ExitFailure, "did you mean gpt-4?"},
		{family, []string{"--dry-run"}, command.ExitOK, "4 created"},
		{family, nil, command.ExitOK, "4 created"},
		{family, nil, command.ExitOK, "0 created, 4 unchanged"},
		{"namespace: tenant\n" + family, nil, command.ExitOK, "4 created"},
		{family, []string{"-n", "defaultt", "--allow-new"}, command.ExitOK, "4 created"},
		{"manifest: m\n", []string{"-n", "defaultt", "--allow-new", "--prune", "--yes"}, command.ExitOK, "4 deleted"},
	} {
		if code, text := apply(test.text, test.args...); code != test.code || !strings.Contains(text, strings.TrimPrefix(test.want, "0 created, ")) {
			t.Errorf("%v of %s: exit code %d, %s; want %s", test.args, test.text, code, text, test.want)
		}
	}
}
