package descriptor_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// sameLimits compares sets of limits by their content.
var sameLimits = cmp.Comparer(func(a, b *limiter.Limits) bool { return a.Hash() == b.Hash() })

// planned is the content of a plan, without its working memory.
type planned struct {
	Outcomes []string // "kind rule first+count why"
	Takes    []limiter.Take
	Shadows  []string // "rule descriptor why", then its takes
	Charges  bool
}

func planOf(rules *descriptor.Rules, call descriptor.Call) planned {
	var plan descriptor.Plan
	rules.Plan(&call, &plan)
	return summary(&plan)
}

func summary(plan *descriptor.Plan) planned {
	kinds := map[descriptor.Kind]string{
		descriptor.Unmatched: "unmatched", descriptor.Unlimited: "unlimited", descriptor.Takes: "takes",
		descriptor.Settles: "settles", descriptor.Denied: "denied", descriptor.Exempt: "exempt",
	}
	p := planned{Charges: plan.Charges}
	for _, o := range plan.Outcomes {
		text := kinds[o.Kind]
		if o.Rule != nil {
			text += " " + o.Rule.Name()
		}
		if o.Kind == descriptor.Takes {
			text += fmt.Sprintf(" %d+%d", o.First, o.Count)
		}
		if o.Deny {
			text += " deny"
		}
		if o.Why != "" {
			text += " " + o.Why
		}
		p.Outcomes = append(p.Outcomes, text)
	}
	p.Takes = append(p.Takes, plan.Request.Takes...)
	for _, s := range plan.Shadows {
		parts := []string{strings.TrimSpace(fmt.Sprintf("%s %d %s", s.Rule.Name(), s.Descriptor, s.Why))}
		for _, t := range s.Request.Takes {
			parts = append(parts, fmt.Sprintf("%s %s %v", t.Label, t.Entity, t.Consume))
		}
		p.Shadows = append(p.Shadows, strings.Join(parts, "; "))
	}
	return p
}

// amounts is the consumption of one limit.
func amounts(limit string, amount int64) []limiter.Consumption {
	return []limiter.Consumption{{Limit: limit, Amount: amount}}
}

func TestReferenceRules(t *testing.T) {
	t.Parallel()
	rules := compileDomains(t, reference(t))
	tokens := entries("api_key", "k", "model", "gpt-4", "meter", "tokens")
	withHits := func(d descriptor.Descriptor, hits uint64) descriptor.Descriptor {
		d.Hits, d.HitsSet = hits, true
		return d
	}
	tpm := func(amount int64, mode limiter.Mode) []limiter.Take {
		return []limiter.Take{{Entity: "key/k", Resource: "gpt-4", Consume: amounts("tpm", amount), Mode: mode}}
	}
	refund := withHits(tokens, 7)
	refund.Refund = true
	tests := []struct {
		name string
		desc descriptor.Descriptor
		want planned
	}{
		{"admin", entries("api_key", "admin-1", "anything", "x"), planned{Outcomes: []string{"unlimited unlimited-admins"}}},
		{"request", entries("model", "gpt-4", "api_key", "k"), planned{
			Outcomes: []string{"takes requests 0+1"},
			Takes:    []limiter.Take{{Entity: "key/k", Resource: "gpt-4", Consume: amounts("rpm", 1000)}},
		}},
		{"hostile values", entries("model", "", "api_key", "a/b%\xff"), planned{
			Outcomes: []string{"takes requests 0+1"},
			Takes:    []limiter.Take{{Entity: "key/a%2Fb%25\xff", Consume: amounts("rpm", 1000)}},
		}},
		{"tokens without a number", tokens, planned{Outcomes: []string{"takes tokens 0+1"}, Takes: tpm(1000, limiter.Consume)}},
		{"charge", withHits(tokens, 42), planned{Outcomes: []string{"takes tokens 0+1"}, Takes: tpm(42_000, limiter.Charge), Charges: true}},
		{"look", withHits(tokens, 0), planned{Outcomes: []string{"takes tokens 0+1"}, Takes: tpm(0, limiter.Consume)}},
		{"refund", refund, planned{Outcomes: []string{"takes tokens 0+1"}, Takes: tpm(7000, limiter.Refund)}},
		{"reserve, one parent", withHits(entries("api_key", "k", "model", "m", "meter", "reserve", "org", "a/b"), 3), planned{
			Outcomes: []string{"takes tokens-reserved 0+1"},
			Takes:    []limiter.Take{{Entity: "key/k", Resource: "m", Parents: []string{"org/a%2Fb"}, Consume: amounts("tpm", 3000)}},
		}},
		{"reserve, two parents", entries("api_key", "k", "model", "m", "meter", "reserve", "org", "o", "project", "p"), planned{
			Outcomes: []string{"takes tokens-reserved 0+1"},
			Takes:    []limiter.Take{{Entity: "key/k", Resource: "m", Parents: []string{"project/p", "org/o"}, Consume: amounts("tpm", 1000)}},
		}},
		{"settle", entries("op", "settle", "reservation_id", "x"), planned{Outcomes: []string{"settles settle"}}},
		{"plan and own limits", entries("plan", "free", "user", "u", "PATH", "/v1/chat/completions?x=1"), planned{
			Outcomes: []string{"takes by-plan 0+2"},
			Takes: []limiter.Take{
				{Entity: "user/u", Resource: "chat", Limits: plans(t)["free"], LimitsOf: "plan/free", LimitsBy: limiter.ByPlan, Consume: amounts("rpm", 1000)},
				{
					Entity: "user/u", Resource: "all", Limits: limits(t, limiter.PerDay("rpd", 10_000)),
					LimitsOf: `rule/"llm-gateway"/"by-plan"/1`, Consume: amounts("rpd", 1000),
				},
			},
		}},
		{"unknown plan", entries("plan", "gold", "user", "u", "PATH", "/v1/chat"), planned{Outcomes: []string{"denied by-plan limit_not_configured"}}},
		{"office", entries("remote_address", "10.1.0.0/16"), planned{Outcomes: []string{"unlimited office"}}},
		{"shadow", entries("plan", "trial"), planned{
			Outcomes: []string{"unmatched"}, Shadows: []string{"trial 0; shadow/trial trial [{rps 1000}]"},
		}},
		{"unmatched", entries("x", "y"), planned{Outcomes: []string{"unmatched"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := planOf(rules, descriptor.Call{Domain: "llm-gateway", Descriptors: []descriptor.Descriptor{test.desc}})
			if diff := cmp.Diff(test.want, got, sameLimits); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHits(t *testing.T) {
	t.Parallel()
	spec := rule(key("k", "*"))
	spec.Takes[0].Consume = []descriptor.ConsumeSpec{consume("rpm", 1000, 0), consume("tpm", 500, 2500)}
	overdraw := spec
	overdraw.Overdraw = true
	tests := []struct {
		name     string
		overdraw bool
		call     uint64
		hits     int64 // -1 = none
		refund   bool
		mode     limiter.Mode
		want     map[string]int64 // nil = no take
	}{
		{"no number", false, 0, -1, false, limiter.Consume, map[string]int64{"rpm": 1000, "tpm": 3000}},
		{"call's number", false, 4, -1, false, limiter.Consume, map[string]int64{"rpm": 1000, "tpm": 10_500}},
		{"descriptor's number", false, 4, 2, false, limiter.Consume, map[string]int64{"rpm": 1000, "tpm": 5500}},
		{"look", false, 4, 0, false, limiter.Consume, map[string]int64{"rpm": 0, "tpm": 0}},
		{"huge", false, 0, math.MaxInt64, false, limiter.Consume, map[string]int64{"rpm": 1000, "tpm": tokenbucket.MaxAmount}},
		{"refund", false, 0, 2, true, limiter.Refund, map[string]int64{"tpm": 5000}},
		{"refund without a number", false, 3, -1, true, limiter.Refund, map[string]int64{"tpm": 7500}},
		{"refund of nothing", false, 0, 0, true, limiter.Refund, nil},
		{"overdraw without a number", true, 5, -1, false, limiter.Consume, map[string]int64{"rpm": 1000, "tpm": 13_000}},
		{"overdraw, look", true, 0, 0, false, limiter.Consume, map[string]int64{"rpm": 0, "tpm": 0}},
		{"charge", true, 0, 1, false, limiter.Charge, map[string]int64{"rpm": 1000, "tpm": 3000}},
		{"overdraw, refund", true, 0, 1, true, limiter.Refund, map[string]int64{"tpm": 2500}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := spec
			if test.overdraw {
				s = overdraw
			}
			desc := entries("k", "v")
			desc.Refund = test.refund
			if test.hits >= 0 {
				desc.Hits, desc.HitsSet = uint64(test.hits), true
			}
			var plan descriptor.Plan
			compile(t, s).Plan(&descriptor.Call{Domain: "d", Hits: test.call, Descriptors: []descriptor.Descriptor{desc}}, &plan)
			if got := plan.Outcomes[0].Kind; got != descriptor.Takes {
				t.Fatalf("kind: got %v, want Takes", got)
			}
			if plan.Charges != (test.mode == limiter.Charge) {
				t.Errorf("charges: got %v", plan.Charges)
			}
			var got map[string]int64
			for _, take := range plan.Request.Takes {
				got = map[string]int64{}
				if take.Mode != test.mode {
					t.Errorf("mode: got %v, want %v", take.Mode, test.mode)
				}
				for _, c := range take.Consume {
					got[c.Limit] = c.Amount
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("amounts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAmountsSaturate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(0, tokenbucket.MaxAmount)
		spec := rule(key("k", "*"))
		c := consume("tpm", amount.Draw(t, "constant"), amount.Draw(t, "per hit"))
		spec.Takes[0].Consume = []descriptor.ConsumeSpec{c}
		rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Rules: []descriptor.RuleSpec{spec}}}, nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		desc := entries("k", "")
		desc.Hits, desc.HitsSet = max(1, rapid.Uint64().Draw(t, "hits")), true
		exact := float64(c.Constant) + float64(c.PerHit)*float64(desc.Hits)
		var plan descriptor.Plan
		rules.Plan(&descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{desc}}, &plan)
		got := float64(plan.Request.Takes[0].Consume[0].Amount)
		if want := min(exact, tokenbucket.MaxAmount); math.Abs(got-want) > want*1e-9 {
			t.Fatalf("amount: got %g, want %g", got, want)
		}
	})
}

func TestUnmatched(t *testing.T) {
	t.Parallel()
	call := descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{entries("x", "y"), {}}}
	denying := compileDomains(t, descriptor.DomainSpec{Domain: "d", DenyUnknown: true})
	tests := []struct {
		name  string
		rules *descriptor.Rules
		want  []string
	}{
		{"nil rules", nil, []string{"unmatched", "unmatched"}},
		{"empty rules", &descriptor.Rules{}, []string{"unmatched", "unmatched"}},
		{"unknown domain", compileDomains(t), []string{"unmatched", "unmatched"}},
		{"no rule", compile(t), []string{"unmatched", "unmatched"}},
		{"no rule, deny", denying, []string{"unmatched deny", "unmatched deny"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(planned{Outcomes: test.want}, planOf(test.rules, call)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShadows(t *testing.T) {
	t.Parallel()
	shadow := func(name string, match ...descriptor.MatchSpec) descriptor.RuleSpec {
		r := rule(match...)
		r.Name, r.Shadow = name, true
		return r
	}
	winner := rule(key("k", "*"))
	winner.Name = "winner"
	planless := shadow("planless", key("k", "v"))
	planless.Takes[0].Plan = "{k}"
	rules := compile(t, shadow("one", key("k", "v")), planless, shadow("other", key("k", "w")), shadow("two", key("k", "*")), winner, shadow("late", key("k", "*")))
	got := planOf(rules, descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{entries("x", "y"), entries("k", "v")}})
	want := planned{
		Outcomes: []string{"unmatched", "takes winner 0+1"},
		Takes:    []limiter.Take{{Entity: "e", Resource: "r", Consume: amounts("rpm", 1000)}},
		Shadows: []string{
			"one 1; shadow/one e [{rpm 1000}]",
			"planless 1 limit_not_configured",
			"two 1; shadow/two e [{rpm 1000}]",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// A charge or refund is booked as far as possible, and the rest denies no request.
func TestWhatCannotBeBookedIsLeftOut(t *testing.T) {
	t.Parallel()
	r := rule(key("k", "*"))
	r.Overdraw = true
	planless := r.Takes[0]
	planless.Plan = "{k}"
	r.Takes = append([]descriptor.TakeSpec{planless}, r.Takes...)
	shadow := r
	shadow.Name, shadow.Shadow = "tried", true
	rules := compile(t, shadow, r)
	charge := entries("k", "no plan")
	charge.Hits, charge.HitsSet = 2, true
	call := descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{charge}}
	want := planned{
		Outcomes: []string{"takes rule-2 0+1 limit_not_configured"},
		Takes:    []limiter.Take{{Entity: "e", Resource: "r", Consume: amounts("rpm", 1000), Mode: limiter.Charge}},
		Shadows:  []string{"tried 0; shadow/tried e [{rpm 1000}]"},
		Charges:  true,
	}
	if diff := cmp.Diff(want, planOf(rules, call)); diff != "" {
		t.Errorf("charge (-want +got):\n%s", diff)
	}
	call.Descriptors[0].HitsSet = false // an ordinary take
	want = planned{Outcomes: []string{"denied rule-2 limit_not_configured"}, Shadows: []string{"tried 0 limit_not_configured"}}
	if diff := cmp.Diff(want, planOf(rules, call)); diff != "" {
		t.Errorf("take (-want +got):\n%s", diff)
	}
}

func TestOverride(t *testing.T) {
	t.Parallel()
	own := limits(t, limiter.PerMinute("rpm", 5), limiter.PerMinute("tpm", 7).WithMaxDebt(3))
	both := []descriptor.ConsumeSpec{consume("rpm", 1000, 0), consume("tpm", 0, 1000)}
	two := []descriptor.ConsumeSpec{consume("rpm", 1000, 0), consume("tpm", 1000, 0)}
	replaced := func(all ...limiter.Limit) *limiter.Limits { return limits(t, all...) }
	tests := []struct {
		name     string
		consume  []descriptor.ConsumeSpec
		override string
		own      *limiter.Limits
		limit    descriptor.Limit
		refund   bool
		outcome  string
		want     map[string]*limiter.Limits // by limits consumed
	}{
		{
			name: "the only limit", consume: both[:1], limit: descriptor.Limit{Requests: 9, Period: time.Hour}, outcome: "takes rule-1 0+1",
			want: map[string]*limiter.Limits{"rpm": replaced(limiter.PerHour("rpm", 9))},
		},
		{
			name: "the one by hits, the other resolved", consume: both, limit: descriptor.Limit{Requests: 9, Period: time.Hour}, outcome: "takes rule-1 0+2",
			want: map[string]*limiter.Limits{"tpm": replaced(limiter.PerHour("tpm", 9)), "rpm": nil},
		},
		{
			name: "the one by hits, in own limits", consume: both, own: own, limit: descriptor.Limit{Requests: 9, Period: time.Hour}, outcome: "takes rule-1 0+1",
			want: map[string]*limiter.Limits{"rpm tpm": replaced(limiter.PerMinute("rpm", 5), limiter.PerHour("tpm", 9).WithMaxDebt(3))},
		},
		{
			name: "the named one", consume: both, override: "rpm", limit: descriptor.Limit{Requests: 9, Period: time.Second}, outcome: "takes rule-1 0+2",
			want: map[string]*limiter.Limits{"rpm": replaced(limiter.PerSecond("rpm", 9)), "tpm": nil},
		},
		{
			name: "none is meant", consume: two, limit: descriptor.Limit{Requests: 9, Period: time.Second}, outcome: "takes rule-1 0+1",
			want: map[string]*limiter.Limits{"rpm tpm": nil},
		},
		{
			name: "too many, too long", consume: both[:1], limit: descriptor.Limit{Requests: math.MaxUint64, Period: math.MaxInt64}, outcome: "takes rule-1 0+1",
			want: map[string]*limiter.Limits{"rpm": replaced(limiter.Custom("rpm", limiter.MaxTokens, limiter.MaxTokens, 366*24*time.Hour))},
		},
		{
			name: "too short", consume: both[:1], limit: descriptor.Limit{Requests: 1}, outcome: "takes rule-1 0+1",
			want: map[string]*limiter.Limits{"rpm": replaced(limiter.PerSecond("rpm", 1))},
		},
		{
			name: "not whole milliseconds", consume: both[:1], limit: descriptor.Limit{Requests: 1, Period: time.Second + 1}, outcome: "takes rule-1 0+1",
			want: map[string]*limiter.Limits{"rpm": replaced(limiter.Custom("rpm", 1, 1, 1001*time.Millisecond))},
		},
		{
			name: "nothing admitted", consume: both, limit: descriptor.Limit{Period: time.Second},
			outcome: "denied rule-1 exceeds_capacity", want: map[string]*limiter.Limits{},
		},
		{
			name: "nothing admitted, refund", consume: both, limit: descriptor.Limit{Period: time.Second}, refund: true,
			outcome: "takes rule-1 0+0", want: map[string]*limiter.Limits{},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			spec := rule(key("k", "*"))
			spec.Override = test.override
			spec.Takes[0].Consume, spec.Takes[0].Limits = test.consume, test.own
			desc := entries("k", "v")
			desc.Limit, desc.Refund = &test.limit, test.refund
			plan := planOf(compile(t, spec), descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{desc}})
			if diff := cmp.Diff([]string{test.outcome}, plan.Outcomes); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			got := map[string]*limiter.Limits{}
			for _, take := range plan.Takes {
				var names []string
				for _, c := range take.Consume {
					names = append(names, c.Limit)
				}
				got[strings.Join(names, " ")] = take.Limits
			}
			if diff := cmp.Diff(test.want, got, sameLimits); diff != "" {
				t.Errorf("limits by what is consumed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOverrideIsMadeOnce checks that a limit seen before is not made again. Hot paths compare sets
// by their addresses.
func TestOverrideIsMadeOnce(t *testing.T) {
	t.Parallel()
	rules := compile(t, rule(key("k", "*")))
	seen := map[*limiter.Limits]bool{}
	for i := range 10 {
		desc := entries("k", "v")
		desc.Limit = &descriptor.Limit{Requests: uint64(1 + i%2), Period: time.Minute}
		seen[planOf(rules, descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{desc}}).Takes[0].Limits] = true
	}
	if len(seen) != 2 {
		t.Errorf("sets of limits: got %d, want 2", len(seen))
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	type policy struct {
		policy limiter.Policy
		share  int64
	}
	tests := []struct{ a, b, want policy }{
		{policy{limiter.Allow, 0}, policy{limiter.Deny, 0}, policy{limiter.Deny, 0}},
		{policy{limiter.Unset, 0}, policy{limiter.Allow, 0}, policy{limiter.Unset, 0}},
		{policy{limiter.Local, 100}, policy{limiter.Unset, 0}, policy{limiter.Local, 100}},
		{policy{limiter.Local, 100}, policy{limiter.Local, 50}, policy{limiter.Local, 50}},
		{policy{limiter.Local, 0}, policy{limiter.Local, 50}, policy{limiter.Local, 50}},
		{policy{limiter.Deny, 0}, policy{limiter.Local, 50}, policy{limiter.Deny, 0}},
	}
	for _, test := range tests {
		one, two := rule(key("one", "")), rule(key("two", ""))
		one.OnUnavailable, one.LocalShare = test.a.policy, test.a.share
		two.OnUnavailable, two.LocalShare = test.b.policy, test.b.share
		var plan descriptor.Plan
		rules := compile(t, one, two)
		for _, order := range [][]descriptor.Descriptor{{entries("one", ""), entries("two", "")}, {entries("two", ""), entries("one", "")}} {
			rules.Plan(&descriptor.Call{Domain: "d", Descriptors: order}, &plan)
			if got := (policy{plan.Request.OnUnavailable, plan.Request.LocalShare}); got != test.want {
				t.Errorf("%v and %v: got %v, want %v", test.a, test.b, got, test.want)
			}
		}
	}
}

// TestPlanIsReused checks that a plan has nothing left of the call before.
func TestPlanIsReused(t *testing.T) {
	t.Parallel()
	rules := compileDomains(t, reference(t))
	reserve := entries("api_key", "k", "model", "m", "meter", "reserve", "org", "o", "project", "p")
	calls := []descriptor.Call{
		{Domain: "llm-gateway", Descriptors: []descriptor.Descriptor{reserve, entries("plan", "trial"), reserve}},
		{Domain: "llm-gateway", Descriptors: []descriptor.Descriptor{entries("plan", "trial"), entries("api_key", "k", "model", "m")}},
		{Domain: "nowhere", Descriptors: []descriptor.Descriptor{reserve}},
		{Domain: "llm-gateway"},
	}
	var plan descriptor.Plan
	for range 2 {
		for i := range calls {
			rules.Plan(&calls[i], &plan)
			if diff := cmp.Diff(planOf(rules, calls[i]), summary(&plan), sameLimits); diff != "" {
				t.Errorf("call %d (-fresh +reused):\n%s", i, diff)
			}
		}
	}
}
