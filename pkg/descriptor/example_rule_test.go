package descriptor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExampleOfARule(t *testing.T) {
	rules, problems := Compile([]DomainSpec{{Domain: "d", Rules: []RuleSpec{{
		Match: []MatchSpec{
			{Key: "key", Value: "*"},
			{Key: "model", Value: "gpt-4"},
			{Key: "path", Value: "/v1/*"},
			{Key: "ip", CIDR: []string{"10.0.0.0/8"}},
			{Key: "org", Value: "*", Optional: true},
		},
		Unlimited: true,
	}}}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	d, _ := rules.Domain("d")
	rule := d.Rules()[0]
	got := map[string]string{}
	for _, e := range rule.Example() {
		got[e.Key] = e.Value
	}
	want := map[string]string{"key": "demo", "model": "gpt-4", "path": "/v1/demo", "ip": "10.0.0.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("example (-want +got):\n%s", diff)
	}
	if d.Match(&Descriptor{Entries: rule.Example()}) != rule {
		t.Error("the rule does not match its own example")
	}
}
