package descriptor_test

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/config"
)

func TestResourceNames(t *testing.T) {
	const domains = `
limits: {system: {rpm: 1/minute}}
domains:
- domain: listed
  namespace: a
  resources: [gpt-4, "claude-*"]
  rules:
  - {name: models, match: {model: "*"}, entity: e, resource: "{model}", consume: {rpm: 1}}
  - {name: web, match: {path: "*"}, entity: e, resource: web, consume: {rpm: 1}}
- domain: free
  namespace: b
  rules:
  - {name: models, match: {model: "*"}, entity: e, resource: "{model}", consume: {rpm: 1}}
`
	cfg, err := config.Parse("c.yaml", []byte(domains), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := cfg.Rules.ResourceNames("a", "file"), cfg.Rules.ResourceNames("b")
	if got := strings.Join(a.Names, " "); got != "file gpt-4 other web" || a.Any {
		t.Errorf("listed: %s, any %t", got, a.Any)
	}
	for name, want := range map[string]bool{"gpt-4": true, "claude-3": true, "web": true, "other": true, "file": true, "gpt4": false, "": false} {
		if a.Has(name) != want {
			t.Errorf("listed has %q: %t, want %t", name, !want, want)
		}
	}
	if none := cfg.Rules.ResourceNames("c"); a.Open() || !b.Open() || !none.Open() || none.Any || none.Ruled || !b.Ruled {
		t.Errorf("open: %t, %t and %t", a.Open(), b.Open(), none.Open())
	}
	if len(b.Names) != 0 || !b.Any || b.Has("gpt-4") {
		t.Errorf("free: %+v", b)
	}
}
