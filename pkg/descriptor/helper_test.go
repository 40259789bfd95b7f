package descriptor_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limits makes a set of limits.
func limits(tb testing.TB, all ...limiter.Limit) *limiter.Limits {
	tb.Helper()
	set, err := limiter.NewLimits(all...)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// plans are the plans of the reference file.
func plans(tb testing.TB) map[string]*limiter.Limits {
	tb.Helper()
	return map[string]*limiter.Limits{
		"free": limits(tb, limiter.PerMinute("rpm", 20), limiter.PerMinute("tpm", 10_000)),
		"paid": limits(tb, limiter.PerMinute("rpm", 600), limiter.PerMinute("tpm", 400_000).WithBurst(600_000)),
	}
}

func consume(limit string, constant, perHit int64) descriptor.ConsumeSpec {
	return descriptor.ConsumeSpec{Limit: limit, Constant: constant, PerHit: perHit}
}

// reference is the domain of the reference configuration.
func reference(tb testing.TB) descriptor.DomainSpec {
	tb.Helper()
	at := func(spec descriptor.TakeSpec) []descriptor.TakeSpec { return []descriptor.TakeSpec{spec} }
	hits := []descriptor.ConsumeSpec{consume("tpm", 0, 1000)}
	return descriptor.DomainSpec{Path: "domains[0]", Domain: "llm-gateway", Namespace: "default", Rules: []descriptor.RuleSpec{
		{
			Path: "domains[0].rules[0]", Name: "unlimited-admins", Unlimited: true, Open: true,
			Match: []descriptor.MatchSpec{key("api_key", "admin-*")},
		},
		{
			Path: "domains[0].rules[1]", Name: "requests",
			Match: []descriptor.MatchSpec{key("api_key", "*"), key("model", "*")},
			Takes: at(descriptor.TakeSpec{Entity: "key/{api_key}", Resource: "{model}", Consume: []descriptor.ConsumeSpec{consume("rpm", 1000, 0)}}),
		},
		{
			Path: "domains[0].rules[2]", Name: "tokens", Overdraw: true,
			Match: []descriptor.MatchSpec{key("api_key", "*"), key("model", "*"), key("meter", "tokens")},
			Takes: at(descriptor.TakeSpec{Entity: "key/{api_key}", Resource: "{model}", Consume: hits}),
		},
		{
			Path: "domains[0].rules[3]", Name: "tokens-reserved",
			Match: []descriptor.MatchSpec{key("api_key", "*"), key("model", "*"), key("meter", "reserve"), key("project?", "*"), key("org?", "*")},
			Takes: at(descriptor.TakeSpec{
				Path: "domains[0].rules[3]", Entity: "key/{api_key}", Resource: "{model}",
				Parents: []string{"project/{project}", "org/{org}"}, Consume: hits, Reserve: true,
			}),
		},
		{
			Path: "domains[0].rules[4]", Name: "settle", Settle: []descriptor.ConsumeSpec{{Limit: "tpm", PerHit: 1000}},
			Match: []descriptor.MatchSpec{key("op", "settle"), key("reservation_id", "*")},
		},
		{
			Path: "domains[0].rules[5]", Name: "by-plan",
			Match: []descriptor.MatchSpec{key("plan", "*"), key("user", "*"), {Key: "PATH", Regex: "/v1/(?P<route>[^/?]+).*"}},
			Takes: []descriptor.TakeSpec{
				{Entity: "user/{user}", Resource: "{route}", Plan: "{plan}", Consume: []descriptor.ConsumeSpec{consume("rpm", 1000, 0)}},
				{Entity: "user/{user}", Resource: "all", Limits: limits(tb, limiter.PerDay("rpd", 10_000)), Consume: []descriptor.ConsumeSpec{consume("rpd", 1000, 0)}},
			},
		},
		{
			Path: "domains[0].rules[6]", Name: "office", Unlimited: true,
			Match: []descriptor.MatchSpec{{Key: "remote_address", CIDR: []string{"10.0.0.0/8", "fd00::/8"}}},
		},
		{
			Path: "domains[0].rules[7]", Name: "trial", Shadow: true,
			Match: []descriptor.MatchSpec{key("plan", "trial")},
			Takes: at(descriptor.TakeSpec{
				Entity: "trial", Resource: "all", Limits: limits(tb, limiter.PerSecond("rps", 10).WithBurst(20)),
				Consume: []descriptor.ConsumeSpec{consume("rps", 1000, 0)},
			}),
		},
	}}
}
