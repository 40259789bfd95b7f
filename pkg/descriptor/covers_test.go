package descriptor_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		template, name string
		want           bool
	}{
		{"key/{key}", "key/k-1", true},
		{"key/{key}", "key/", true},
		{"key/{key}", "user/k-1", false},
		{"{tenant}/{key}", "a/b", true},
		{"office", "office", true},
		{"office", "offices", false},
		{"a.c", "abc", false},
		{"{{x}}/{key}", "{x}/k", true},
		{"{{x}}", "y", false},
		{"ip/{address/64}", "ip/2001:db8::/64", true},
	} {
		if got := descriptor.Covers(c.template, c.name); got != c.want {
			t.Errorf("%s and %s: got %t", c.template, c.name, got)
		}
	}
}

// Rules tell the entities and the resources that they may take from.
func TestTakes(t *testing.T) {
	take := func(entity, resource string, parents ...string) descriptor.RuleSpec {
		return descriptor.RuleSpec{Name: entity, Match: []descriptor.MatchSpec{{Key: "k", Value: "*"}}, Takes: []descriptor.TakeSpec{{
			Entity: entity, Resource: resource, Parents: parents, Consume: []descriptor.ConsumeSpec{{Limit: "l", Constant: 1000}},
		}}}
	}
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "a", Rules: []descriptor.RuleSpec{take("ip/{k}", "login"), take("user/{k}", "{k}", "org/{k}")}}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range []struct {
		namespace, entity, resource string
		from, resourceToo           bool
	}{
		{"default", "ip/1", "login", true, true},
		{"default", "ip/1", "api", true, false},
		{"default", "user/1", "api", true, true},
		{"default", "org/1", "api", true, true},
		{"default", "team/1", "api", false, false},
		{"other", "ip/1", "api", true, true},
	} {
		if from, resourceToo := rules.Takes(c.namespace, c.entity, c.resource); from != c.from || resourceToo != c.resourceToo {
			t.Errorf("%+v: got %t, %t", c, from, resourceToo)
		}
	}
}
