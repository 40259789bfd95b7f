package descriptor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// leased is a rule with a lease, a name, and templates for its buckets.
func leased(name string, lease limiter.LeasePolicy, entity string, match ...descriptor.MatchSpec) descriptor.RuleSpec {
	r := rule(match...)
	r.Name, r.Path, r.Lease, r.Takes[0].Entity = name, name, lease, entity
	return r
}

// Every take of a rule has the rule's lease: on all its buckets, with a limit of the descriptor's
// own, of a shadow rule, and of a refund.
func TestPlanCarriesTheLease(t *testing.T) {
	t.Parallel()
	bounded := limiter.LeasePolicy{Max: 5_000_000, For: 500 * time.Millisecond}
	several := leased("several", bounded, "a/{k}", key("k", "*"))
	several.Takes = append(several.Takes, descriptor.TakeSpec{
		Entity: "b/{k}", Resource: "r", Consume: []descriptor.ConsumeSpec{consume("rpm", 1000, 0), consume("tpm", 0, 1000)},
	})
	dark := leased("dark", limiter.LeasePolicy{None: true}, "dark", key("k", "*"))
	dark.Shadow = true
	rules := compile(t, dark, several, leased("auto", limiter.LeasePolicy{}, "c", key("other", "*")))

	own := entries("k", "v")
	own.Limit = &descriptor.Limit{Requests: 10, Period: time.Minute}
	refund := entries("k", "v")
	refund.Refund, refund.Hits, refund.HitsSet = true, 2, true
	var plan descriptor.Plan
	rules.Plan(&descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{entries("k", "v"), own, refund, entries("other", "v")}}, &plan)

	got := make([]string, len(plan.Request.Takes))
	for i, take := range plan.Request.Takes {
		got[i] = take.Entity + " " + take.Lease.String()
	}
	const a, b = "a/v {max: 5000, for: 500ms}", "b/v {max: 5000, for: 500ms}"
	if diff := cmp.Diff([]string{a, b, a, b, b, b, "c auto"}, got); diff != "" {
		t.Errorf("takes (-want +got):\n%s", diff)
	}
	for _, s := range plan.Shadows {
		for _, take := range s.Request.Takes {
			if !take.Lease.None {
				t.Errorf("the shadow of descriptor %d has lease %v, want none", s.Descriptor, take.Lease)
			}
		}
	}
	if len(plan.Shadows) < 2 {
		t.Errorf("%d shadows, want one for each request at least", len(plan.Shadows))
	}

	desc := entries("k", "v")
	e := rules.Explain("d", &desc)
	if text := e.String(); !strings.Contains(text, "\n  lease: {max: 5000, for: 500ms}\n") {
		t.Errorf("the explanation does not say so:\n%s", text)
	}
}

func TestWarningsOfLeases(t *testing.T) {
	t.Parallel()
	auto, none := limiter.LeasePolicy{}, limiter.LeasePolicy{None: true}
	small := limiter.LeasePolicy{Max: 999}
	meter := key("meter", "tokens")
	every, internal := key("k", "*"), key("k", "internal-*")
	plan := func(r descriptor.RuleSpec, name string) descriptor.RuleSpec {
		r.Takes[0].Plan = name
		return r
	}
	shadow := func(r descriptor.RuleSpec) descriptor.RuleSpec {
		r.Shadow = true
		return r
	}
	const disagree = `b.lease: is none, and rule "a" takes from the same buckets with lease auto: a bucket follows the rule that took from it last; give both the same`
	for _, test := range []struct {
		name  string
		rules []descriptor.RuleSpec
		want  []string
	}{
		{"two that agree", []descriptor.RuleSpec{leased("a", none, "e/{k}", every, meter), leased("b", none, "e/{k}", every)}, nil},
		{"two that do not", []descriptor.RuleSpec{leased("a", auto, "e/{k}", every, meter), leased("b", none, "e/{k}", every)}, []string{disagree}},
		{"other entities", []descriptor.RuleSpec{leased("a", auto, "e/{k}", every, meter), leased("b", none, "f/{k}", every)}, nil},
		{"other values", []descriptor.RuleSpec{leased("a", auto, "e/{k}", internal), leased("b", none, "e/{k}", every)}, nil},
		{"a shadow, with buckets of its own", []descriptor.RuleSpec{leased("a", auto, "e/{k}", every, meter), shadow(leased("b", none, "e/{k}", every))}, nil},
		{"one under a plan", []descriptor.RuleSpec{leased("a", auto, "e/{k}", every, meter), plan(leased("b", none, "e/{k}", every), "free")}, nil},
		{"both under a plan", []descriptor.RuleSpec{plan(leased("a", auto, "e/{k}", every, meter), "free"), plan(leased("b", none, "e/{k}", every), "free")}, []string{disagree}},
		{"too small for a request", []descriptor.RuleSpec{leased("a", small, "e/{k}", every)}, []string{
			"a.lease.max: is less than the 1 of rpm that a request takes, so that nothing is leased: raise it, or write `lease: none`",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Rules: test.rules}}, plans(t))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			warnings := rules.Warnings()
			got := make([]string, len(warnings))
			for i, p := range warnings {
				got[i] = p.Path + ": " + p.Text
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
