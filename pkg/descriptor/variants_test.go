package descriptor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Each bucket that a rule keeps apart has a name by its variant.
func TestVariants(t *testing.T) {
	limits := func(n int64) *limiter.Limits {
		l, err := limiter.NewLimits(limiter.PerMinute("rpm", n))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	free, paid, own := limits(1), limits(2), limits(3)
	take := func(plan string, limits *limiter.Limits) []descriptor.TakeSpec {
		return []descriptor.TakeSpec{{Entity: "e", Resource: "r", Plan: plan, Limits: limits, Consume: []descriptor.ConsumeSpec{{Limit: "rpm", Constant: limiter.Milli}}}}
	}
	match := func(key string) []descriptor.MatchSpec { return []descriptor.MatchSpec{{Key: key, Value: "*"}} }
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{
		{Domain: "d", Rules: []descriptor.RuleSpec{
			{Name: "by-plan", Match: match("plan"), Takes: take("{plan}", nil)},
			{Name: "own", Match: match("a"), Takes: take("", own)},
			{Name: "levels", Match: match("b"), Takes: take("", nil)},
			{Name: "trial", Match: match("c"), Shadow: true, Takes: take("free", nil)},
			{Name: "tried", Match: match("f"), Shadow: true, Takes: take("", nil)},
		}},
		{Domain: "elsewhere", Namespace: "other", Rules: []descriptor.RuleSpec{{Name: "own", Match: match("a"), Takes: take("", own)}}},
	}, map[string]*limiter.Limits{"free": free, "paid": paid})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := map[uint64]string{
		limiter.VariantOf(free, "plan/free", "", false):            "plan free",
		limiter.VariantOf(paid, "plan/paid", "", false):            "plan paid",
		limiter.VariantOf(own, `rule/"d"/"own"/0`, "", false):      "rule own",
		limiter.VariantOf(free, "plan/free", "shadow/trial", true): "plan free of rule trial (shadow)",
		limiter.VariantOf(nil, "", "shadow/trial", true):           "rule trial (shadow)",
		limiter.VariantOf(nil, "", "shadow/tried", true):           "rule tried (shadow)",
	}
	if diff := cmp.Diff(want, rules.Variants(limiter.DefaultNamespace)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// A decision has the same variants.
	for _, entry := range []string{"plan", "a", "b"} {
		var plan descriptor.Plan
		rules.Plan(&descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{{Entries: []descriptor.Entry{{Key: entry, Value: "free"}}}}}, &plan)
		got := &plan.Request.Takes[0]
		v := limiter.VariantOf(got.Limits, got.LimitsOf, got.Label, got.Shadow)
		if (want[v] == "") != (entry == "b") {
			t.Errorf("%s: variant %x is %q", entry, v, want[v])
		}
	}
	if none := (*descriptor.Rules)(nil).Variants("default"); len(none) != 0 {
		t.Errorf("no rules have %v", none)
	}
}
