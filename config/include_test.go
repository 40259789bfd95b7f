package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// domains are the names of a configuration's domains, in order.
func domains(c *config.Config) string {
	names := make([]string, 0, len(c.Rules.Domains()))
	for _, d := range c.Rules.Domains() {
		names = append(names, d.Name())
	}
	return strings.Join(names, " ")
}

func TestInclude(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{
		"etc/ratelimit.yaml", "etc/rules/a.yaml", "etc/rules/b.yml", "etc/rules/c.json", "etc/rules/.hidden.yaml",
		"etc/rules/sub/d.yaml", "etc/rules/.git/e.yaml", "etc/..data/f.yaml", "etc/g.txt", "other/h.yaml",
	} {
		files[name] = &fstest.MapFile{Data: []byte("domain: " + strings.TrimPrefix(name, "etc/") + "\n")}
	}
	for _, test := range []struct{ paths, want string }{
		{`[{path: "rules/*.yaml"}]`, "rules/a.yaml"},
		{`[{path: "rules/*"}]`, "rules/a.yaml rules/b.yml"},
		{`[{path: "rules/*.y*ml"}, {path: "rules/a.yaml"}]`, "rules/a.yaml rules/b.yml"},
		{`[{path: rules}]`, "rules/a.yaml rules/b.yml rules/sub/d.yaml"},
		{`[{path: rules/.git}]`, "rules/.git/e.yaml"},
		{`[{path: "..data/*.yaml"}]`, "..data/f.yaml"},
		{`[{path: rules/.hidden.yaml}, {path: g.txt}]`, "rules/.hidden.yaml g.txt"},
		{`[{path: "*.yaml"}]`, ""},
		{`[{path: "none/*.yaml"}]`, ""},
		{`[{path: ../other/h.yaml}]`, "other/h.yaml"},
		{`[{path: "*/*.yaml"}]`, "rules/a.yaml"},
	} {
		c, err := config.Parse("etc/ratelimit.yaml", []byte("include: "+test.paths+"\n"), files)
		if err != nil {
			t.Errorf("%s: %v", test.paths, err)
			continue
		}
		if got := domains(c); got != test.want {
			t.Errorf("%s includes %q, want %q", test.paths, got, test.want)
		}
	}
}

func TestIncludedForms(t *testing.T) {
	files := fstest.MapFS{
		"list.yaml":  {Data: []byte("domains: [{domain: one, unmatched: deny}, {domain: two}]\n")},
		"one.yaml":   {Data: []byte("domain: three\nnamespace: ns\nrules: [{match: {a: b}, unlimited: true}]\n")},
		"empty.yaml": {Data: []byte("# nothing yet\n")},
	}
	c, err := config.Parse("ratelimit.yaml", []byte("include: [{path: '*.yaml'}]\ndomains: [{domain: zero}]\n"), files)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(c.Rules.Domains()))
	for _, d := range c.Rules.Domains() {
		got = append(got, fmt.Sprintf("%s in %s, deny %t", d.Name(), d.Namespace(), d.DenyUnknown()))
	}
	want := []string{"zero in default, deny false", "one in default, deny true", "two in default, deny false", "three in ns, deny false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("domains (-want +got):\n%s", diff)
	}
}

func TestEnvoyproxyFile(t *testing.T) {
	files := fstest.MapFS{"envoy.yaml": {Data: []byte(`
domain: mongo_cps
descriptors:
- key: database
  value: users
  rate_limit: {unit: Second, requests_per_unit: 500, name: users}
- key: database
  descriptors:
  - {key: tenant, value: 7, rate_limit: {unit: minute, requests_per_unit: 4294967295}, detailed_metric: true}
  - {key: tenant, rate_limit: {unit: hour}}
- {key: free, rate_limit: {unlimited: true, replaces: [{name: users}]}}
`)}}
	c, err := config.Parse("ratelimit.yaml", []byte("{include: [{path: envoy.yaml}], unmatched: deny}\n"), files)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(`
envoy.yaml:9: warning: descriptors[1].descriptors[0].detailed_metric: has no effect: metrics have the names of rules, never values of descriptors
envoy.yaml:10: warning: descriptors[1].descriptors[1].rate_limit: has no requests_per_unit, and so denies everything`)
	if diff := cmp.Diff(want, c.Warnings.Error()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	call := descriptor.Call{Domain: "mongo_cps", Descriptors: []descriptor.Descriptor{
		{Entries: []descriptor.Entry{{Key: "database", Value: "users"}}},
		{Entries: []descriptor.Entry{{Key: "database", Value: "other"}, {Key: "tenant", Value: "7"}}},
		{Entries: []descriptor.Entry{{Key: "database", Value: "other"}, {Key: "tenant", Value: "8"}}},
		{Entries: []descriptor.Entry{{Key: "free", Value: "x"}}},
	}}
	var plan descriptor.Plan
	c.Rules.Plan(&call, &plan)
	got := make([]string, 0, len(plan.Outcomes))
	for _, o := range plan.Outcomes {
		limits := make([]string, 0, o.Count)
		for _, take := range plan.Request.Takes[o.First : o.First+o.Count] {
			limits = append(limits, take.Limits.At(0).String())
		}
		got = append(got, fmt.Sprintf("%s %v", o.Rule.Name(), limits))
	}
	wantRules := []string{"database_users []", "database.tenant_7 [4294967295/minute]", "database.tenant []", "free []"} // the last rule replaces the first
	if diff := cmp.Diff(wantRules, got); diff != "" {
		t.Errorf("rules and limits (-want +got):\n%s", diff)
	}
}

// TestDirectoryWithLinks reads a mounted ConfigMap, and a link that leads back up.
func TestDirectoryWithLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..2024", "a.yaml"), "domain: a\n")
	write(t, filepath.Join(dir, "..2024", "sub", "b.yaml"), "domain: b\n")
	for link, target := range map[string]string{"..data": "..2024", "a.yaml": "..data/a.yaml", "sub": "..data/sub", "loop": "."} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load("", config.Options{Rules: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "a.yaml"), filepath.Join(dir, "sub", "b.yaml")}
	if diff := cmp.Diff(want, c.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// An include says how its files charge.
func TestOverdrawBesideAnInclude(t *testing.T) {
	t.Parallel()
	file := func(domain string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("domain: " + domain + "\ndescriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 10}}]\n")}
	}
	files := fstest.MapFS{"a.yaml": file("auto"), "sub/deep/b.yaml": file("always"), "c1.yaml": file("never"), "d.yaml": file("said")}
	c, err := config.Parse("ratelimit.yaml", []byte(`
include:
- {path: a.yaml}
- {path: sub, overdraw: always}
- {path: "c*.yaml", overdraw: never}
- {path: d.yaml, overdraw: auto}
`), files)
	if err != nil {
		t.Fatal(err)
	}
	asked := descriptor.NewAsked().Of(c.Rules)
	modeOf := func(domain string, hits uint64) limiter.Mode {
		var plan descriptor.Plan
		c.Rules.Plan(&descriptor.Call{
			Domain: domain, Hits: hits, Asked: asked, Now: time.Unix(1e9, 0),
			Descriptors: []descriptor.Descriptor{{Entries: []descriptor.Entry{{Key: "user", Value: "u"}}}},
		}, &plan)
		return plan.Outcomes[0].Mode
	}
	for domain, then := range map[string]limiter.Mode{"always": limiter.Charge, "never": limiter.Consume, "auto": limiter.Charge, "said": limiter.Charge} {
		first := limiter.Consume
		if domain == "always" {
			first = limiter.Charge
		}
		if got := modeOf(domain, 3); got != first {
			t.Errorf("%s, the first number: got mode %v, want %v", domain, got, first)
		}
		modeOf(domain, 0) // asks
		if got := modeOf(domain, 3); got != then {
			t.Errorf("%s, after a request without a number: got mode %v, want %v", domain, got, then)
		}
	}
	if _, err := config.Parse("ratelimit.yaml", []byte("include: [{path: a.yaml, overdraw: yes}]"), files); err == nil || !strings.Contains(err.Error(), "auto, never or always") {
		t.Errorf("overdraw: yes: got %v", err)
	}
}
