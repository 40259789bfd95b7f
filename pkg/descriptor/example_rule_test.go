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

// A domain of an envoyproxy/ratelimit file has the entries of its first limit.
func TestExampleOfATree(t *testing.T) {
	limit := &TreeLimitSpec{Unit: "minute", RequestsPerUnit: 1}
	for _, test := range []struct {
		tree []TreeSpec
		want []Entry
	}{
		{[]TreeSpec{{Key: "b", Limit: limit}, {Key: "a", Value: "x*", Limit: limit}}, []Entry{{"a", "xdemo"}}},
		{[]TreeSpec{{Key: "a", Value: "z", Children: []TreeSpec{{Key: "user", Limit: limit}}}, {Key: "b", Limit: limit}}, []Entry{{"a", "z"}, {"user", "demo"}}},
		{[]TreeSpec{{Key: "a", Limit: &TreeLimitSpec{Unlimited: true}}, {Key: "b", Limit: &TreeLimitSpec{Unit: "day"}}}, nil},
	} {
		rules, problems := Compile([]DomainSpec{{Domain: "d", Tree: test.tree}}, nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		d, _ := rules.Domain("d")
		if diff := cmp.Diff(test.want, d.Example()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.tree, diff)
		}
	}
}
