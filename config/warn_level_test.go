package config_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/config"
)

// warnings returns the warnings about a configuration, by path, but for those of limits that nothing reaches.
func warnings(t *testing.T, text string) map[string]string {
	t.Helper()
	c, err := config.Parse("c.yaml", []byte(text), nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	found := map[string]string{}
	for _, w := range c.Warnings {
		if !strings.HasPrefix(w.Text, "limits nothing") {
			found[w.Path] = w.Text
		}
	}
	return found
}

// wantWarnings checks the paths of the warnings and a part of each.
func wantWarnings(t *testing.T, name string, got, want map[string]string) {
	t.Helper()
	short := map[string]string{}
	for path, text := range got {
		if part, ok := want[path]; ok && strings.Contains(text, part) {
			text = part
		}
		short[path] = text
	}
	if diff := cmp.Diff(want, short); diff != "" {
		t.Errorf("%s: warnings (-want +got):\n%s", name, diff)
	}
}

// A rule that takes more than the capacity of a limit can never be admitted, and gets a warning.
func TestAmountsAboveTheCapacity(t *testing.T) {
	t.Parallel()
	const head = `
plans: {free: {p: 10/minute}, paid: {p: 100/minute}}
limits:
  system: {a: 10/minute, b: {rate: 100/minute, burst: 5}}
  resources: {big: {a: 100/minute}, small: {a: 3/minute}, free: {a: unlimited}}
  entities: {key/k: {limits: {_default_: {a: 2/minute}}}}
domains:
- domain: d
  rules:
`
	for rule, want := range map[string]map[string]string{
		`{entity: "user/{m}", resource: r, consume: {a: 10}}`:                             {},
		`{entity: "user/{m}", resource: r, consume: {a: 20}}`:                             {"domains[0].rules[0].consume.a": "takes 20 or more of a, and limits.system.a holds 10"},
		`{entity: "user/{m}", resource: r, consume: {a: 5, b: 5.001}}`:                    {"domains[0].rules[0].consume.b": "takes 5.001 or more of b, and limits.system.b holds 5"},
		`{entity: "user/{m}", resource: r, consume: {a: {hits: 10.5}}}`:                   {"domains[0].rules[0].consume.a": "takes 10.5 or more"},
		`{entity: "user/{m}", resource: r, consume: {a: 20}, overdraw: true}`:             {},
		`{entity: "user/{m}", resource: big, consume: {a: 20}}`:                           {},
		`{entity: "user/{m}", resource: small, consume: {a: 4}}`:                          {"domains[0].rules[0].consume.a": "limits.resources.small.a holds 3"},
		`{entity: "user/{m}", resource: free, consume: {a: 1000}}`:                        {},
		`{entity: "user/{m}", resource: "{m}", consume: {a: 4}}`:                          {"domains[0].rules[0].consume.a": "limits.resources.small.a holds 3"},
		`{entity: "user/{m}", resource: "{m}", resources: [big], consume: {a: 4}}`:        {},
		`{entity: "user/{m}", resource: "{m}", resources: [big, small], reserve: {a: 4}}`: {"domains[0].rules[0].reserve.a": "limits.resources.small.a holds 3"},
		`{entity: "key/{m}", resource: r, consume: {a: 3}}`:                               {"domains[0].rules[0].consume.a": "limits.entities.key/k.limits._default_.a holds 2"},
		`{entity: "user/{m}", resource: r, limits: {x: 5/minute}, consume: {x: 6}}`:       {"domains[0].rules[0].consume.x": "domains[0].rules[0].limits.x holds 5"},
		`{entity: "user/{m}", resource: r, limits: free, consume: {p: 11}}`:               {"domains[0].rules[0].consume.p": "holds 10"},
		`{entity: "user/{m}", resource: r, limits: "{m}", consume: {p: 11}}`:              {"domains[0].rules[0].consume.p": "plans.free.p holds 10"},
		`{entity: "user/{m}", resource: r, limits: paid, consume: {p: 11}}`:               {},
	} {
		wantWarnings(t, rule, warnings(t, head+"  - {match: {m: \"*\"}, "+rule[1:]+"\n"), want)
	}
}

// A parent that has only the limits of its children gets one warning.
func TestParentsWithoutLimits(t *testing.T) {
	t.Parallel()
	const rules = `
domains:
- domain: d
  rules:
  - {match: {u: "*", o: "*"}, entity: "user/{u}", parent: ["team/{o}", "org/{o}"], resource: r, consume: {a: 1}}
  - {match: {u: "*", o: "*", x: "*"}, entity: "user/{u}", parent: ["team/{o}", "org/{o}"], resource: r, consume: {a: 1}}
`
	for name, test := range map[string]struct {
		limits string
		want   map[string]string
	}{
		"none has": {`{system: {a: 5/minute}}`, map[string]string{
			"domains[0].rules[0].parent[0]": "no entity team/…", "domains[0].rules[0].parent[1]": "no entity org/…",
		}},
		"one has": {`{system: {a: 5/minute}, entities: {org/acme: {limits: {_default_: {a: 50/minute}}}}}`, map[string]string{
			"domains[0].rules[0].parent[0]": "no entity team/…",
		}},
		"one is named": {`{system: {a: 5/minute}, entities: {org/acme: {}, team/x: {limits: {r: {a: 20/minute}}}}}`, map[string]string{
			"domains[0].rules[0].parent[1]": "no entity org/…",
		}},
		"all have": {`{system: {a: 5/minute}, entities: {org/acme: {limits: {_default_: {a: 50/minute}}}, team/x: {limits: {r: {a: 20/minute}}}}}`, map[string]string{}},
		"a parent in the file": {`{system: {a: 5/minute}, entities: {org/acme: {limits: {r: {a: 9/minute}}}, team/x: {limits: {r: {a: 9/minute}}}, k1: {parent: p, cascade: true}, k2: {parent: p, cascade: true}, k3: {parent: q}}}`, map[string]string{
			"limits.entities.k1.parent": "p has no limits under limits.entities",
		}},
		"a parent with limits": {`{system: {a: 5/minute}, entities: {org/acme: {limits: {r: {a: 9/minute}}}, team/x: {parent: org/acme, cascade: true, limits: {r: {a: 9/minute}}}}}`, map[string]string{}},
	} {
		wantWarnings(t, name, warnings(t, "limits: "+test.limits+rules), test.want)
	}
}

// Two listeners cannot have one address.
func TestListenersOnOneAddress(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		server string
		path   string // of the problem; "" = none
	}{
		{`{grpc: {address: "127.0.0.1:8080"}}`, "server.http.address"},
		{`{http: {address: ":8081"}}`, "server.http.address"},
		{`{http: {address: "127.0.0.1:8081"}}`, "server.http.address"},
		{`{http: {address: "localhost:9"}, grpc: {address: "127.0.0.1:9"}}`, "server.http.address"},
		{`{http: {address: "[::]:8081"}}`, "server.http.address"},
		{`{http: {address: "[::1]:8081"}}`, ""},
		{`{http: {address: "10.0.0.1:9"}, grpc: {address: "10.0.0.2:9"}}`, ""},
		{`{http: {address: "a.example:9"}, grpc: {address: "a.example:09"}}`, "server.http.address"},
		{`{http: {address: "127.0.0.1:9"}, admin: {address: "127.0.0.1:9", tokens: {ops: {role: read, hash: "sha256:` + strings.Repeat("0", 64) + `"}}}}`, "server.admin.address"},
		{`{http: {address: ":0"}, grpc: {address: ":0"}}`, ""},
	} {
		_, err := config.Parse("c.yaml", []byte("server: "+test.server+"\n"), nil)
		switch {
		case test.path == "" && err != nil:
			t.Errorf("%s: got %v", test.server, err)
		case test.path != "" && (err == nil || !strings.Contains(err.Error(), test.path+": is ")):
			t.Errorf("%s: got %v, want a problem at %s", test.server, err, test.path)
		}
	}
}

func TestDomainsWithoutRules(t *testing.T) {
	const text = "ratelimit.yaml:1: warning: domains[0]: the domain a has no rules: nothing in it is limited"
	for data, want := range map[string]string{
		"domains: [{domain: a}]":                                            text,
		"domains: [{domain: a, rules: []}]":                                 text,
		"domains: [{domain: a, unmatched: deny}]":                           "",
		"domains: [{domain: a, rules: [{match: {k: v}, unlimited: true}]}]": "",
	} {
		c, err := config.Parse("", []byte(data), nil)
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, w := range c.Warnings {
			all.WriteString(w.String())
		}
		if got := all.String(); got != want {
			t.Errorf("%s: got %q, want %q", data, got, want)
		}
	}
}

// A limit of envoyproxy/ratelimit that is meant as a budget gets a warning like a native one. In that
// service its counter starts anew in each unit.
func TestWarnsOfBudgetsOfTrees(t *testing.T) {
	file := `
domain: shop
descriptors:
- key: user
  rate_limit: {unit: MONTH, requests_per_unit: 1000}
  descriptors:
  - {key: plan, value: none, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: plan, value: all, rate_limit: {unlimited: true}}
  - {key: plan, value: small, rate_limit: {unit: day, requests_per_unit: 5}}
  - {key: plan, rate_limit: {unit: hour, requests_per_unit: 50}}
`
	c, err := config.Parse("c.yaml", []byte("include: [{path: envoy.yaml}]\n"), fstest.MapFS{"envoy.yaml": {Data: []byte(file)}})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(`
envoy.yaml:5: warning: descriptors[0].rate_limit: 1000/month is no counter that starts anew: within a month up to 2000 are admitted, the capacity and the refill; a native rule with a smaller burst lowers that
envoy.yaml:9: warning: descriptors[0].descriptors[2].rate_limit: 5/day is no counter that starts anew: within a day up to 10 are admitted, the capacity and the refill; a native rule with a smaller burst lowers that`)
	if diff := cmp.Diff(want, c.Warnings.Error()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// The warnings of a rule read no copy of all entities: a file of many entities and rules would be slow.
func TestManyEntitiesAndRules(t *testing.T) {
	const entities = 2000
	allocated := func(rules int) uint64 {
		var b strings.Builder
		b.WriteString("limits:\n  entities:\n")
		for i := range entities {
			fmt.Fprintf(&b, "    u-%d: {limits: {_default_: {rpm: %d/minute}}}\n", i, i+2)
		}
		b.WriteString("domains:\n- domain: d\n  rules:\n")
		for i := range rules {
			fmt.Fprintf(&b, "  - {match: {path: /p%d, user: \"*\"}, entity: \"u-{user}\", resource: r, consume: {rpm: %d}}\n", i, i%3+1)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if got := warnings(t, b.String()); (len(got) > 0) != (rules > 2) {
			t.Errorf("%d rules: warnings %v", rules, got)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	one := allocated(1)
	if many := allocated(201); (many-one)/200 > entities*100 {
		t.Errorf("one rule allocates %d bytes beside %d entities", (many-one)/200, entities)
	}
}
