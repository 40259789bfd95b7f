//go:build !race

package descriptor_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

func TestMatchDoesNotAllocate(t *testing.T) {
	rules := compileDomains(t, reference(t), descriptor.DomainSpec{Domain: "d", Rules: []descriptor.RuleSpec{
		rule(key("a", "*x*")), rule(key("a", "y*")), rule(key("a", "1"), key("b?", "*")),
	}})
	tests := []struct {
		name, domain string
		desc         descriptor.Descriptor
	}{
		{"exact and star", "llm-gateway", entries("api_key", "k", "model", "gpt-4", "meter", "tokens")},
		{"open, prefix", "llm-gateway", entries("api_key", "admin-7", "other", "x")},
		{"regex", "llm-gateway", entries("plan", "free", "user", "u", "PATH", "/v1/chat")},
		{"cidr", "llm-gateway", entries("remote_address", "10.1.2.3")},
		{"none", "llm-gateway", entries("x", "y")},
		{"infix", "d", entries("a", "axa")},
		{"prefix", "d", entries("a", "yes")},
		{"repeated key", "d", entries("a", "2", "a", "1", "b", "")},
	}
	for _, test := range tests {
		d, _ := rules.Domain(test.domain)
		if got := testing.AllocsPerRun(100, func() { d.Match(&test.desc) }); got != 0 {
			t.Errorf("%s: got %v allocations a match, want 0", test.name, got)
		}
	}
}

func TestPlanAllocatesOnlyNames(t *testing.T) {
	rules := compileDomains(t, reference(t))
	tests := []struct {
		name string
		desc descriptor.Descriptor
		want float64 // one for each name that is made
	}{
		{"unlimited", entries("api_key", "admin-7"), 0},
		{"one name", entries("api_key", "k", "model", "gpt-4"), 1},
		{"three names", entries("api_key", "k", "model", "m", "meter", "reserve", "org", "o", "project", "p"), 3},
		{"literal names, shadow", entries("plan", "trial"), 0},
		{"two names, groups", entries("plan", "free", "user", "u", "PATH", "/v1/chat"), 3},
	}
	asked := descriptor.NewAsked()
	tree := treeOf(t, branch("user", "", per("hour", 1)), branch("tenant", "*", per("hour", 1)))
	of := asked.Of(tree)
	now := time.Unix(1e6, 0)
	for _, number := range []uint64{0, 1} {
		desc := entries("tenant", "t")
		desc.HitsSet, desc.Hits = true, number
		call := descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{desc}, Asked: of}
		var plan descriptor.Plan
		plans := func() {
			now = now.Add(time.Minute) // the time is written at each call
			call.Now = now
			tree.Plan(&call, &plan)
		}
		if got := testing.AllocsPerRun(100, plans); got > 1 {
			t.Errorf("a tree, %d hits: got %v allocations a plan, want 1", number, got)
		}
	}
	for _, test := range tests {
		call := descriptor.Call{Domain: "llm-gateway", Descriptors: []descriptor.Descriptor{test.desc}}
		var plan descriptor.Plan
		if got := testing.AllocsPerRun(100, func() { rules.Plan(&call, &plan) }); got > test.want {
			t.Errorf("%s: got %v allocations a plan, want %v", test.name, got, test.want)
		}
	}
}
