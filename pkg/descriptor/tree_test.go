package descriptor_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func branch(name, value string, limit *descriptor.TreeLimitSpec, children ...descriptor.TreeSpec) descriptor.TreeSpec {
	return descriptor.TreeSpec{Path: name + "_" + value, Key: name, Value: value, Limit: limit, Children: children}
}

func per(unit string, requests uint32) *descriptor.TreeLimitSpec {
	return &descriptor.TreeLimitSpec{Unit: unit, RequestsPerUnit: requests}
}

// treeOf compiles one domain "d" of descriptors.
func treeOf(tb testing.TB, tree ...descriptor.TreeSpec) *descriptor.Rules {
	tb.Helper()
	return compileDomains(tb, descriptor.DomainSpec{Path: "domains[0]", Domain: "d", Tree: tree})
}

// testTree is a file with everything that a descriptor can have.
func testTree(tb testing.TB) *descriptor.Rules {
	tb.Helper()
	shared := branch("path", "/shared/*", per("MONTH", 6))
	shared.ShareThreshold = true
	shadow := branch("mode", "shadow", per("year", 7))
	shadow.Shadow = true
	named := per("second", 8)
	named.Name = "tokens"
	replacing := per("second", 9)
	replacing.Replaces = []string{"tokens"}
	return treeOf(tb,
		branch("user", "", per("day", 1)),
		branch("user", "alice", per("Hour", 2), branch("path", "/a", per("week", 3))),
		branch("user", "a*", per("minute", 4)),
		branch("user", "al*", per("minute", 5)),
		branch("user", "whitelisted", nil),
		branch("path", "/x/*", per("second", 5)),
		shared, shadow,
		branch("blocked", "", per("second", 0)),
		branch("unlimited", "", &descriptor.TreeLimitSpec{Unlimited: true}),
		branch("named", "", named),
		branch("replacing", "", replacing),
		branch("override", "", per("second", 10)),
	)
}

func TestTree(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	rules := testTree(t)
	takes := func(rule, entity string, tokens int64, period time.Duration) planned {
		return planned{Outcomes: []string{"takes " + rule + " 0+1"}, Takes: []limiter.Take{{
			Entity: entity, Resource: "d", Consume: amounts("requests", 1000),
			Limits: limits(t, limiter.Custom("requests", tokens, tokens, period).WithMaxDebt(tokens)), LimitsOf: "descriptors",
		}}}
	}
	outcome := func(text string) planned { return planned{Outcomes: []string{text}} }
	tests := []struct {
		name string
		desc descriptor.Descriptor
		want planned
	}{
		{"key without a value", entries("user", "bob/x"), takes("user", "user=bob%2Fx", 1, day)},
		{"empty value", entries("user", ""), takes("user", "user=", 1, day)},
		{"exact value", entries("user", "alice"), takes("user_alice", "user=alice", 2, time.Hour)},
		{"below", entries("user", "alice", "path", "/a"), takes("user_alice.path_/a", "user=alice/path=%2Fa", 3, 7*day)},
		{"in another order", entries("path", "/a", "user", "alice"), outcome("unmatched")},
		{"first pattern", entries("user", "alan"), takes("user_a*", "user=alan", 4, time.Minute)},
		{"no way back", entries("user", "alan", "path", "/a"), outcome("unmatched")},
		{"too deep", entries("user", "alice", "path", "/a", "more", ""), outcome("unmatched")},
		{"no entries", entries(), outcome("unmatched")},
		{"unknown key", entries("x", ""), outcome("unmatched")},
		{"unknown value without a default", entries("path", "/y"), outcome("unmatched")},
		{"without a limit", entries("user", "whitelisted"), outcome("unlimited user_whitelisted")},
		{"pattern", entries("path", "/x/1"), takes("path_/x/*", "path=%2Fx%2F1", 5, time.Second)},
		{"shared pattern", entries("path", "/shared/1"), takes("path_/shared/*", "path~%2Fshared%2F*", 6, 30*day)},
		{"shadow", entries("mode", "shadow"), planned{
			Outcomes: []string{"unlimited mode_shadow"},
			Shadows:  []string{"mode_shadow 0; shadow/mode_shadow mode=shadow [{requests 1000}]"},
		}},
		{"blocked", entries("blocked", "x"), outcome("denied blocked exceeds_capacity")},
		{"unlimited", entries("unlimited", "x"), outcome("unlimited unlimited")},
		{"rule named like the one for overrides", entries("override", ""), takes("rule-14", "override=", 10, time.Second)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := planOf(rules, descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{test.desc}})
			if diff := cmp.Diff(test.want, got, sameLimits); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			explained := rules.Explain("d", &test.desc)
			if got := len(explained.Plan.Request.Takes); got != len(test.want.Takes) {
				t.Errorf("explained takes: got %d, want %d", got, len(test.want.Takes))
			}
			matched := ruleName(domain(t, rules).Match(&test.desc))
			if want := ruleName(explained.Rule); matched != want && len(test.want.Shadows) == 0 {
				t.Errorf("match: got %q, want %q", matched, want)
			}
		})
	}
}

func TestTreeReplaces(t *testing.T) {
	t.Parallel()
	got := planOf(testTree(t), descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{
		entries("named", "a"), entries("replacing", "b"), entries("named", "c"),
	}})
	if diff := cmp.Diff([]string{"unlimited named", "takes replacing 0+1", "unlimited named"}, got.Outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	got = planOf(testTree(t), descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{entries("named", "a")}})
	if take := got.Takes[0]; take.Consume[0].Limit != "tokens" {
		t.Errorf("limit that has a name: got %q", take.Consume[0].Limit)
	}
}

func TestTreeHits(t *testing.T) {
	t.Parallel()
	look, refund, override := entries("blocked", ""), entries("user", "u"), entries("no", "rule")
	look.HitsSet = true
	refund.Hits, refund.HitsSet, refund.Refund = 3, true, true
	override.Limit = &descriptor.Limit{Requests: 5, Period: time.Hour}
	got := planOf(testTree(t), descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{look, refund, override}})
	want := planned{
		Outcomes: []string{"takes blocked 0+0", "takes user 0+1", "takes override 1+1"},
		Takes: []limiter.Take{
			{
				Entity: "user=u", Resource: "d", Consume: amounts("requests", 3000), Mode: limiter.Refund,
				Limits: limits(t, limiter.PerDay("requests", 1).WithMaxDebt(1)), LimitsOf: "descriptors",
			},
			{
				Entity: "no=rule", Resource: "d", Consume: amounts("requests", 1000),
				Limits: limits(t, limiter.PerHour("requests", 5).WithMaxDebt(5)), Given: "requests",
			},
		},
	}
	if diff := cmp.Diff(want, got, sameLimits); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// TestTreeBucketsStayApart checks that no entries imitate others, or a pattern whose values share a
// bucket.
func TestTreeBucketsStayApart(t *testing.T) {
	t.Parallel()
	shared := branch("k", "b*", per("day", 1))
	shared.ShareThreshold = true
	rules := treeOf(t,
		branch("k", "*\xff", per("day", 1)), shared,
		branch("k", "", per("day", 1), branch("l", "", per("day", 1))),
		branch("k=a/l", "", per("day", 1)), branch("k~b*", "", per("day", 1)),
	)
	seen := map[string]descriptor.Descriptor{}
	for _, desc := range []descriptor.Descriptor{
		entries("k", "b1"), entries("k", "b*\xff"), entries("k", "a"), entries("k", "a", "l", "x"), entries("k", "a/l=x"),
		entries("k=a/l", "x"), entries("k~b*", ""), entries("k", "a%2Fl=x"),
	} {
		got := planOf(rules, descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{desc}})
		if len(got.Takes) != 1 {
			t.Fatalf("%q: got %q, want a take", desc.Entries, got.Outcomes)
		}
		if before, ok := seen[got.Takes[0].Entity]; ok {
			t.Errorf("%q and %q share %q", before.Entries, desc.Entries, got.Takes[0].Entity)
		}
		seen[got.Takes[0].Entity] = desc
	}
}

func TestTreeProblems(t *testing.T) {
	t.Parallel()
	named := per("second", 1)
	named.Name, named.Replaces = "n", []string{"n", "", "other"}
	unlimited := per("second", 1)
	unlimited.Unlimited = true
	plain := branch("k", "v", per("second", 1))
	plain.ShareThreshold = true
	tests := []struct {
		name string
		tree []descriptor.TreeSpec
		path string
		text string
	}{
		{"no key", []descriptor.TreeSpec{branch("", "v", nil)}, "_v.key", "is missing"},
		{"twice", []descriptor.TreeSpec{branch("k", "v", nil), branch("k", "v", nil)}, "k_v", "already"},
		{"unit", []descriptor.TreeSpec{branch("k", "", per("fortnight", 1))}, "k_.rate_limit.unit", "no unit"},
		{"no unit", []descriptor.TreeSpec{branch("k", "", per("", 1))}, "k_.rate_limit.unit", "no unit"},
		{"unlimited with a unit", []descriptor.TreeSpec{branch("k", "", unlimited)}, "k_.rate_limit.unit", "unlimited"},
		{"replaces itself", []descriptor.TreeSpec{branch("k", "", named)}, "k_.rate_limit.replaces[0]", "another"},
		{"replaces nothing", []descriptor.TreeSpec{branch("k", "", named)}, "k_.rate_limit.replaces[1]", "another"},
		{"shares without a pattern", []descriptor.TreeSpec{plain}, "k_v.share_threshold", "'*'"},
		{"below", []descriptor.TreeSpec{branch("a", "", nil, branch("k", "", per("x", 1)))}, "k_.rate_limit.unit", "no unit"},
	}
	for _, test := range tests {
		_, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Tree: test.tree}}, nil)
		found := slices.ContainsFunc(problems, func(p descriptor.Problem) bool {
			return p.Path == test.path && strings.Contains(p.Text, test.text)
		})
		if !found {
			t.Errorf("%s: got %q, want one at %q with %q", test.name, problems, test.path, test.text)
		}
	}
	_, problems := descriptor.Compile([]descriptor.DomainSpec{{Path: "p", Domain: "d", Tree: []descriptor.TreeSpec{branch("k", "", nil)}, Rules: []descriptor.RuleSpec{rule(key("k", ""))}}}, nil)
	if len(problems) != 1 || problems[0].Path != "p.rules" {
		t.Errorf("rules beside descriptors: got %q", problems)
	}
}

func TestTreeWarnings(t *testing.T) {
	t.Parallel()
	quota := branch("k", "", per("second", 1))
	quota.Quota = true
	if got := treeOf(t, quota, branch("l", "", per("second", 1))).Warnings(); len(got) != 0 {
		t.Errorf("warnings: got %q, want none: quota_mode has its effect", got)
	}
}
