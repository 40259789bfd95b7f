package descriptor_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// render returns the entity that a rule with the template gives for values of the keys a, b and c.
// It returns false when the template is refused.
func render(template string) (entity func(values []string) string, ok bool) {
	var spec descriptor.RuleSpec
	for _, name := range []string{"a", "b", "c"} {
		spec.Match = append(spec.Match, key(name, "*"))
	}
	spec.Takes = []descriptor.TakeSpec{{Entity: template, Resource: "r", Consume: []descriptor.ConsumeSpec{consume("rpm", 1000, 0)}}}
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Rules: []descriptor.RuleSpec{spec}}}, nil)
	if len(problems) > 0 {
		return nil, false
	}
	return func(values []string) string {
		var plan descriptor.Plan
		desc := entries("a", values[0], "b", values[1], "c", values[2])
		rules.Plan(&descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{desc}}, &plan)
		return plan.Request.Takes[0].Entity
	}, true
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	tests := []struct{ template, want string }{
		{"key", "key"},
		{"{a}", "x/y%z-"},
		{"key/{a}", "key/x%2Fy%25z-"},
		{"{a}/", "x%2Fy%25z-/"},
		{"{a}-{b}", "x%2Fy%25z%2D--"},
		{"{a}5{b}", "x%2Fy%25z-5-"},
		{"{{{a}}}", "{x%2Fy%25z-}"},
		{"{{a}}", "{a}"},
		{"{a}/{b}/{a}", "x%2Fy%25z-/-/x%2Fy%25z-"},
	}
	for _, test := range tests {
		entity, ok := render(test.template)
		if !ok {
			t.Errorf("%q is refused", test.template)
			continue
		}
		if got := entity([]string{"x/y%z-", "-", ""}); got != test.want {
			t.Errorf("%q: got %q, want %q", test.template, got, test.want)
		}
	}
}

func TestFirstMatchingValueFeedsThePlaceholder(t *testing.T) {
	t.Parallel()
	spec := rule(key("k", "x*"), descriptor.MatchSpec{Key: "p", Regex: "/(?P<first>[a-z]+)(?P<rest>/.*)?"})
	spec.Takes[0].Entity, spec.Takes[0].Resource = "{k}", "{first}:{rest}"
	plan := planOf(compile(t, spec), descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{
		entries("p", "9", "k", "a", "k", "x1", "k", "x2", "p", "/abc", "p", "/def"),
	}})
	if take := plan.Takes[0]; take.Entity != "x1" || take.Resource != "abc:" {
		t.Errorf("entity and resource: got %q and %q, want %q and %q", take.Entity, take.Resource, "x1", "abc:")
	}
}

// TestTemplatesAreOneToOne checks that different values of placeholders never give the same text,
// for any template.
func TestTemplatesAreOneToOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		template := rapid.StringOfN(rapid.SampledFrom([]rune("ABC/%25-:{")), 1, 8, -1).Draw(t, "template")
		template = strings.NewReplacer("A", "{a}", "B", "{b}", "C", "{c}", "{", "{{").Replace(template)
		entity, ok := render(template)
		if !ok {
			return // refused, like "{a}{b}"
		}
		value := rapid.OneOf(
			rapid.StringOfN(rapid.SampledFrom([]rune("/%25-:aF{}")), 0, 4, -1),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) string { return string(b) }),
		)
		values := rapid.SliceOfN(value, 3, 3)
		one, two := values.Draw(t, "one"), values.Draw(t, "two")
		for i, name := range []string{"{a}", "{b}", "{c}"} {
			if !strings.Contains(template, name) {
				two[i] = one[i]
			}
		}
		same := one[0] == two[0] && one[1] == two[1] && one[2] == two[2]
		if a, b := entity(one), entity(two); (a == b) != same {
			t.Fatalf("template %q: %q gives %q, %q gives %q", template, one, a, two, b)
		}
	})
}

// TestNamesOfRulesStayApart checks that no value makes the name of one rule equal to that of
// another with more parts.
func TestNamesOfRulesStayApart(t *testing.T) {
	t.Parallel()
	short, _ := render("key/{a}")
	long, _ := render("key/{a}/{b}")
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte("/%2Fab\xff")), 0, 6), func(b []byte) string { return string(b) })
		values := rapid.SliceOfN(value, 3, 3)
		one, two := values.Draw(t, "one"), values.Draw(t, "two")
		if a, b := short(one), long(two); a == b {
			t.Fatalf("%q and %q both give %q", one, two, a)
		}
	})
}
