package descriptor_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// reserving is a domain that reserves tokens by estimate, money by a weight, and one request each.
// It settles tokens and money.
func reserving(tb testing.TB) *descriptor.Rules {
	tb.Helper()
	estimated := consume("tpm", 0, 1000)
	estimated.Estimate = &descriptor.EstimateSpec{Min: 100_000, Max: 4_000_000}
	at := descriptor.TakeSpec{Path: "R", Entity: "key/{key}", Resource: "{model}"}
	requests, tokens := at, at
	requests.Consume = []descriptor.ConsumeSpec{consume("rpm", 1000, 0)}
	tokens.Reserve, tokens.Consume = true, []descriptor.ConsumeSpec{estimated, consume("usd", 500, 2)}
	return compile(tb,
		descriptor.RuleSpec{Path: "R", Name: "reserve", Match: []descriptor.MatchSpec{key("key", "*"), key("model", "*")}, Takes: []descriptor.TakeSpec{requests, tokens}},
		descriptor.RuleSpec{
			Path: "S", Name: "settle", Match: []descriptor.MatchSpec{key("reservation_id", "*"), key("kind?", "*")},
			Settle: []descriptor.ConsumeSpec{consume("tpm", 0, 1000), consume("usd", 0, 2500)},
		},
	)
}

// known is an estimator with one number.
type known map[string]int64

func (k known) Estimate(namespace, entity, resource, limit string) (int64, bool) {
	n, ok := k[strings.Join([]string{namespace, entity, resource, limit}, " ")]
	return n, ok
}

func hits(d descriptor.Descriptor, n uint64) descriptor.Descriptor {
	d.Hits, d.HitsSet = n, true
	return d
}

func TestReserve(t *testing.T) {
	t.Parallel()
	rules := reserving(t)
	ask := entries("key", "k", "model", "m")
	const who = "default key/k m tpm"
	tests := []struct {
		name      string
		desc      descriptor.Descriptor
		callHits  uint64
		estimates known
		tpm, usd  int64
		hits      uint64
	}{
		{name: "a number", desc: hits(ask, 700), tpm: 700_000, usd: 1_900, hits: 700},
		{name: "a number of the call", desc: ask, callHits: 30, tpm: 30_000, usd: 560, hits: 30},
		{name: "a number beside an estimate", desc: hits(ask, 700), estimates: known{who: 5_000_000}, tpm: 700_000, usd: 1_900, hits: 700},
		{name: "no number, nothing known", desc: ask, tpm: 4_000_000, usd: 502, hits: 1},
		{name: "no number, known", desc: ask, estimates: known{who: 1_234_567}, tpm: 1_234_567, usd: 502, hits: 1},
		{name: "no number, little known", desc: ask, estimates: known{who: 7}, tpm: 100_000, usd: 502, hits: 1},
		{name: "no number, much known", desc: ask, estimates: known{who: 9_000_000}, tpm: 4_000_000, usd: 502, hits: 1},
		{name: "another's is known", desc: ask, estimates: known{"default key/x m tpm": 200_000}, tpm: 4_000_000, usd: 502, hits: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var plan descriptor.Plan
			call := descriptor.Call{Domain: "d", Hits: test.callHits, Descriptors: []descriptor.Descriptor{test.desc}}
			if test.estimates != nil {
				call.Estimates = test.estimates
			}
			rules.Plan(&call, &plan)
			want := []limiter.Take{
				{Entity: "key/k", Resource: "m", Consume: amounts("rpm", 1000)},
				{Entity: "key/k", Resource: "m", Consume: append(amounts("tpm", test.tpm), amounts("usd", test.usd)...)},
			}
			if diff := cmp.Diff(want, plan.Request.Takes, sameLimits); diff != "" {
				t.Errorf("takes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]descriptor.Reserve{{Take: 1, Hits: test.hits}}, plan.Reserves); diff != "" {
				t.Errorf("reserves (-want +got):\n%s", diff)
			}
		})
	}
}

// A peek, a refund and a charge are no reservations, and none is left of an earlier plan.
func TestNoReserve(t *testing.T) {
	t.Parallel()
	rules := reserving(t)
	ask := entries("key", "k", "model", "m")
	refund := hits(ask, 5)
	refund.Refund = true
	var plan descriptor.Plan
	for name, descs := range map[string][]descriptor.Descriptor{
		"look": {hits(ask, 0)}, "refund": {refund}, "settled": {refund, hits(ask, 7)}, "unmatched": {entries("x", "y")},
	} {
		rules.Plan(&descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{ask}}, &plan)
		rules.Plan(&descriptor.Call{Domain: "d", Descriptors: descs}, &plan)
		if len(plan.Reserves) > 0 {
			t.Errorf("%s: got reserves %v, want none", name, plan.Reserves)
		}
	}
}

// A refund and a charge of the same descriptor in one call settle, in any order. Of both, only the
// amounts by hits count, and the charge cannot be refused.
func TestSettleByRefundAndCharge(t *testing.T) {
	t.Parallel()
	rules := reserving(t)
	ask := entries("key", "k", "model", "m")
	refund := hits(ask, 1000)
	refund.Refund = true
	take := func(mode limiter.Mode, tpm, usd int64) limiter.Take {
		return limiter.Take{Entity: "key/k", Resource: "m", Mode: mode, Consume: append(amounts("tpm", tpm), amounts("usd", usd)...)}
	}
	back := take(limiter.Refund, 1_000_000, 2_000)
	tests := []struct {
		name  string
		descs []descriptor.Descriptor
		want  []limiter.Take
	}{
		{"refund first", []descriptor.Descriptor{refund, hits(ask, 400)}, []limiter.Take{back, take(limiter.Charge, 400_000, 800)}},
		{"charge first", []descriptor.Descriptor{hits(ask, 400), refund}, []limiter.Take{take(limiter.Charge, 400_000, 800), back}},
		{"nothing was used", []descriptor.Descriptor{refund, hits(ask, 0)}, []limiter.Take{back}},
		{"no number", []descriptor.Descriptor{refund, ask}, []limiter.Take{
			back,
			{Entity: "key/k", Resource: "m", Consume: amounts("rpm", 1000)},
			{Entity: "key/k", Resource: "m", Consume: append(amounts("tpm", 4_000_000), amounts("usd", 502)...)},
		}},
		{"another descriptor", []descriptor.Descriptor{refund, hits(entries("key", "k", "model", "n"), 4)}, []limiter.Take{
			back,
			{Entity: "key/k", Resource: "n", Consume: amounts("rpm", 1000)},
			{Entity: "key/k", Resource: "n", Consume: append(amounts("tpm", 4_000), amounts("usd", 508)...)},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var plan descriptor.Plan
			rules.Plan(&descriptor.Call{Domain: "d", Descriptors: test.descs}, &plan)
			if diff := cmp.Diff(test.want, plan.Request.Takes, sameLimits); diff != "" {
				t.Errorf("takes (-want +got):\n%s", diff)
			}
			for _, o := range plan.Outcomes {
				if settles := o.Mode == limiter.Charge; o.Settled != settles {
					t.Errorf("an outcome of mode %d: settled is %v, want %v", o.Mode, o.Settled, settles)
				}
			}
		})
	}
}

func TestSettleByID(t *testing.T) {
	t.Parallel()
	rules := reserving(t)
	done := entries("reservation_id", "x")
	refund := hits(done, 3)
	refund.Refund = true
	used := func(tpm, usd int64) []limiter.Consumption { return append(amounts("tpm", tpm), amounts("usd", usd)...) }
	tests := []struct {
		name  string
		descs []descriptor.Descriptor
		want  []descriptor.Settlement
	}{
		{"a number", []descriptor.Descriptor{hits(done, 400)}, []descriptor.Settlement{{ID: "x", Used: used(400_000, 1_000_000)}}},
		{"nothing was used", []descriptor.Descriptor{hits(done, 0)}, []descriptor.Settlement{{ID: "x", Used: used(0, 0)}}},
		{"no number", []descriptor.Descriptor{done}, []descriptor.Settlement{{ID: "x", Used: used(0, 0), Why: descriptor.NoNumber}}},
		{"a refund", []descriptor.Descriptor{refund}, []descriptor.Settlement{{ID: "x", Used: used(3_000, 7_500), Why: descriptor.IsRefund}}},
		{"an empty id", []descriptor.Descriptor{hits(entries("reservation_id", ""), 1)}, []descriptor.Settlement{{Used: used(1_000, 2_500)}}},
		{"beside others", []descriptor.Descriptor{entries("x", "y"), hits(done, 1), hits(entries("reservation_id", "z", "kind", "in"), 2)}, []descriptor.Settlement{
			{Descriptor: 1, ID: "x", Used: used(1_000, 2_500)}, {Descriptor: 2, ID: "z", Used: used(2_000, 5_000)},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var plan descriptor.Plan
			rules.Plan(&descriptor.Call{Domain: "d", Descriptors: test.descs}, &plan)
			if diff := cmp.Diff(test.want, plan.Settlements); diff != "" {
				t.Errorf("settlements (-want +got):\n%s", diff)
			}
			if len(plan.Request.Takes) > 0 {
				t.Errorf("takes: got %v, want none", plan.Request.Takes)
			}
		})
	}
}

func TestReserveMistakes(t *testing.T) {
	t.Parallel()
	estimate := func(least, most int64) *descriptor.EstimateSpec {
		return &descriptor.EstimateSpec{Min: least, Max: most}
	}
	reserve := func(change func(*descriptor.RuleSpec)) descriptor.RuleSpec {
		r := rule(key("a", "*"))
		r.Takes[0].Reserve, r.Takes[0].Consume = true, []descriptor.ConsumeSpec{{Limit: "tpm", PerHit: 1000, Estimate: estimate(1, 2)}}
		change(&r)
		return r
	}
	tests := []struct {
		name string
		rule descriptor.RuleSpec
		want string
	}{
		{"an estimate of what is consumed", reserve(func(r *descriptor.RuleSpec) { r.Takes[0].Reserve = false }), "belongs to `reserve`"},
		{"an estimate of a constant", reserve(func(r *descriptor.RuleSpec) { r.Takes[0].Consume[0].PerHit = 0 }), "belongs to an amount by hits"},
		{"an estimate of nothing", reserve(func(r *descriptor.RuleSpec) { r.Takes[0].Consume[0].Estimate = estimate(0, 2) }), "0 < min <= max"},
		{"min above max", reserve(func(r *descriptor.RuleSpec) { r.Takes[0].Consume[0].Estimate = estimate(3, 2) }), "0 < min <= max"},
		{"overdraw", reserve(func(r *descriptor.RuleSpec) { r.Overdraw = true }), "both charged and reserved"},
		{"no id", descriptor.RuleSpec{Match: []descriptor.MatchSpec{key("a", "*")}, Settle: []descriptor.ConsumeSpec{consume("tpm", 0, 1000)}}, "needs reservation_id"},
		{"an optional id", descriptor.RuleSpec{Match: []descriptor.MatchSpec{key("reservation_id?", "*")}, Settle: []descriptor.ConsumeSpec{consume("tpm", 0, 1000)}}, "needs reservation_id"},
		{"a constant", descriptor.RuleSpec{Match: []descriptor.MatchSpec{key("reservation_id", "*")}, Settle: []descriptor.ConsumeSpec{consume("tpm", 5, 1000)}}, "must be hits"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, problems := descriptor.Compile([]descriptor.DomainSpec{{Path: "domains[0]", Domain: "d", Rules: []descriptor.RuleSpec{test.rule}}}, nil)
			if len(problems) != 1 || !strings.Contains(problems[0].Text, test.want) {
				t.Errorf("problems: got %q, want one of %q", problems, test.want)
			}
		})
	}
}

// An estimate above the capacity of a bucket gives a warning.
func TestEstimateAboveCapacity(t *testing.T) {
	t.Parallel()
	r := rule(key("a", "*"))
	r.Takes[0].Limits, r.Takes[0].Reserve = limits(t, limiter.PerMinute("tpm", 4)), true
	r.Takes[0].Consume = []descriptor.ConsumeSpec{{Limit: "tpm", PerHit: 1000, Estimate: &descriptor.EstimateSpec{Min: 1, Max: 4001}}}
	got := compile(t, r).Warnings()
	if len(got) != 1 || !strings.Contains(got[0].Text, "can never pass") {
		t.Errorf("warnings: got %q, want one that it can never pass", got)
	}
}
