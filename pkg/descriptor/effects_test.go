package descriptor_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// Rules that deny, and rules that exempt calls.
func TestDenyAndExempt(t *testing.T) {
	deny := rule(descriptor.MatchSpec{Key: "user", Values: []string{"mallory", "bot-*"}})
	deny.Takes, deny.Deny, deny.Name = nil, &descriptor.Denial{}, "blocked"
	exempt := rule(key("role", "ops"))
	exempt.Takes, exempt.Exempt, exempt.Name = nil, true, "ops"
	try := rule(descriptor.MatchSpec{Key: "user", Values: []string{"eve"}})
	try.Takes, try.Deny, try.Shadow, try.Name = nil, &descriptor.Denial{}, true, "try"
	users := rule(key("user", "*"))
	users.Name = "users"
	rules := compile(t, deny, exempt, try, users)
	for _, test := range []struct {
		name        string
		descriptors []descriptor.Descriptor
		want        []string
		takes       int
		shadows     []string
	}{
		{"a denied value", []descriptor.Descriptor{entries("user", "mallory")}, []string{"denied blocked denied_by_rule"}, 0, nil},
		{"a denied pattern", []descriptor.Descriptor{entries("user", "bot-7")}, []string{"denied blocked denied_by_rule"}, 0, nil},
		{"another one", []descriptor.Descriptor{entries("user", "ada")}, []string{"takes users 0+1"}, 1, nil},
		{"a shadow denies nothing", []descriptor.Descriptor{entries("user", "eve")}, []string{"takes users 0+1"}, 1, []string{"try 0 denied_by_rule"}},
		{
			"an exempt call",
			[]descriptor.Descriptor{entries("user", "ada"), entries("user", "mallory"), entries("role", "ops"), entries("nobody", "x"), entries("user", "eve")},
			[]string{"exempt users", "exempt blocked", "exempt ops", "exempt", "exempt users"},
			0, nil,
		},
	} {
		got := planOf(rules, descriptor.Call{Domain: "d", Descriptors: test.descriptors})
		if diff := cmp.Diff(test.want, got.Outcomes); diff != "" || len(got.Takes) != test.takes || fmt.Sprint(got.Shadows) != fmt.Sprint(test.shadows) {
			t.Errorf("%s: %d takes, shadows %q (-want +got):\n%s", test.name, len(got.Takes), got.Shadows, diff)
		}
	}
}
