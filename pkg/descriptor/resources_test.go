package descriptor_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// listed is a rule whose resource is the value of model.
func listed(resources ...string) descriptor.RuleSpec {
	r := rule(key("model", "*"))
	r.Takes[0].Resource, r.Takes[0].Resources = "{model}", resources
	return r
}

// resourceOf returns the resource of a model.
func resourceOf(t *testing.T, rules *descriptor.Rules, model string) string {
	t.Helper()
	var plan descriptor.Plan
	rules.Plan(&descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{entries("model", model)}}, &plan)
	if len(plan.Request.Takes) != 1 {
		t.Fatalf("%q: takes: got %d, want 1", model, len(plan.Request.Takes))
	}
	found := plan.Request.Takes[0].Resource
	var want []descriptor.Unlisted
	if found != model {
		want = []descriptor.Unlisted{{Take: 0, Value: model}}
	}
	if diff := cmp.Diff(want, plan.Unlisted); diff != "" {
		t.Errorf("%q: unlisted (-want +got):\n%s", model, diff)
	}
	return found
}

func TestListOfResources(t *testing.T) {
	t.Parallel()
	rules := compile(t, listed("gpt-4", "claude-*", "claude-3", "*-mini"))
	for model, want := range map[string]string{
		"gpt-4": "gpt-4", "claude-3": "claude-3", "claude-9": "claude-*", "claude-": "claude-*", "claude-x-mini": "claude-*", "o-mini": "*-mini",
		"GPT-4": "other", "gpt-4\x20": "other", "gpt-4\u200b": "other", "": "other", "other": "other", "claude": "other", "claude-*": "claude-*",
		strings.Repeat("x", 1<<16): "other",
	} {
		if got := resourceOf(t, rules, model); got != want {
			t.Errorf("model %.20q is counted as %q, want %q", model, got, want)
		}
	}
}

// The list of a rule goes before that of the domain. Neither applies to a resource without a
// placeholder.
func TestListOfResourcesOfADomain(t *testing.T) {
	t.Parallel()
	literal := rule(key("model", "*"), key("all", "*"))
	literal.Takes[0].Resource = "all"
	own := listed("b")
	own.Match = append(own.Match, key("own", "*"))
	rules := compileDomains(t, descriptor.DomainSpec{
		Path: "d", Domain: "d", Resources: []string{"a"}, Rules: []descriptor.RuleSpec{listed(), own, literal},
	})
	for _, test := range []struct {
		desc descriptor.Descriptor
		want string
	}{
		{entries("model", "a"), "a"},
		{entries("model", "b"), "other"},
		{entries("model", "b", "own", ""), "b"},
		{entries("model", "a", "own", ""), "other"},
		{entries("model", "b", "all", ""), "all"},
	} {
		var plan descriptor.Plan
		rules.Plan(&descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{test.desc}}, &plan)
		if got := plan.Request.Takes[0].Resource; got != test.want {
			t.Errorf("%v is counted as %q, want %q", test.desc.Entries, got, test.want)
		}
	}
}

// The list applies to a shadow rule too.
func TestListOfResourcesOfAShadow(t *testing.T) {
	t.Parallel()
	shadow := listed("a")
	shadow.Shadow = true
	rules := compile(t, shadow)
	var plan descriptor.Plan
	rules.Plan(&descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{entries("model", "b")}}, &plan)
	if got := plan.Shadows[0].Request.Takes[0].Resource; got != "other" {
		t.Errorf("resource: got %q, want other", got)
	}
}

func TestListOfResourcesProblems(t *testing.T) {
	t.Parallel()
	literal := rule(key("model", "*"))
	literal.Takes[0].Resources = []string{"a"}
	for name, test := range map[string]struct {
		spec descriptor.DomainSpec
		path string
		text string
	}{
		"a resource that the file names": {descriptor.DomainSpec{Rules: []descriptor.RuleSpec{literal}}, ".resources", "no placeholder"},
		"every value":                    {descriptor.DomainSpec{Rules: []descriptor.RuleSpec{listed("a", "*")}}, ".resources", "share one bucket"},
		"an empty name":                  {descriptor.DomainSpec{Resources: []string{""}}, "d.resources", "empty name"},
	} {
		test.spec.Path, test.spec.Domain = "d", "d"
		_, problems := descriptor.Compile([]descriptor.DomainSpec{test.spec}, nil)
		if len(problems) != 1 || !strings.HasSuffix(problems[0].Path, test.path) || !strings.Contains(problems[0].Text, test.text) {
			t.Errorf("%s: got %q, want one at %s with %q", name, problems, test.path, test.text)
		}
	}
}
