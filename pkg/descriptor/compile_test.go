package descriptor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// TestProblems changes one thing of a valid rule and expects a problem at a path, with a part of
// its text.
func TestProblems(t *testing.T) {
	t.Parallel()
	take := func(change func(*descriptor.TakeSpec)) func(*descriptor.RuleSpec) {
		return func(r *descriptor.RuleSpec) { change(&r.Takes[0]) }
	}
	entity := func(template string) func(*descriptor.RuleSpec) {
		return take(func(s *descriptor.TakeSpec) { s.Entity = template })
	}
	tests := []struct {
		name       string
		change     func(*descriptor.RuleSpec)
		path, text string
	}{
		{"long name", func(r *descriptor.RuleSpec) { r.Name = strings.Repeat("x", 65) }, "R.name", "at most 64"},
		{"name with a quote", func(r *descriptor.RuleSpec) { r.Name = `a"b` }, "R.name", "without quotes"},
		{"name with a line feed", func(r *descriptor.RuleSpec) { r.Name = "a\nb" }, "R.name", "printable"},
		{"name not UTF-8", func(r *descriptor.RuleSpec) { r.Name = "a\xff" }, "R.name", "printable"},
		{"no match", func(r *descriptor.RuleSpec) { r.Match = nil }, "R.match", "is empty"},
		{"empty key", func(r *descriptor.RuleSpec) { r.Match[1].Key = "" }, "R.match.b?", "has no key"},
		{"key twice", func(r *descriptor.RuleSpec) { r.Match[1].Key = "a" }, "R.match.b?", "named twice"},
		{"regex", func(r *descriptor.RuleSpec) { r.Match[0].Regex = "(" }, "R.match.a.regex", "missing closing"},
		{"regex that closes the anchor", func(r *descriptor.RuleSpec) { r.Match[0].Regex = "a)|(b" }, "R.match.a.regex", "unexpected )"},
		{"group named like a key", func(r *descriptor.RuleSpec) { r.Match[0].Regex = "(?P<b>x)" }, "R.match.a.regex", "name of a key"},
		{"two groups of a name", func(r *descriptor.RuleSpec) { r.Match[0].Regex, r.Match[1].Regex = "(?P<g>x)", "(?P<g>y)" }, "R.match.b?.regex", "name of a group"},
		{"cidr", func(r *descriptor.RuleSpec) { r.Match[0].CIDR = []string{"::/0", "10.0.0/8"} }, "R.match.a.cidr[1]", "not a block"},
		{"cidr, address", func(r *descriptor.RuleSpec) { r.Match[0].CIDR = []string{"10.0.0.1"} }, "R.match.a.cidr[0]", "10.0.0.1/32"},
		{"cidr, host bits", func(r *descriptor.RuleSpec) { r.Match[0].CIDR = []string{"10.0.0.1/8"} }, "R.match.a.cidr[0]", "10.0.0.0/8"},
		{"nothing to do", func(r *descriptor.RuleSpec) { r.Takes = nil }, "R", "does nothing"},
		{"two things to do", func(r *descriptor.RuleSpec) { r.Unlimited = true }, "R", "one thing"},
		{"overdraw of nothing", func(r *descriptor.RuleSpec) { r.Takes, r.Unlimited, r.Overdraw = nil, true, true }, "R.overdraw", "nothing to charge"},
		{"share", func(r *descriptor.RuleSpec) { r.LocalShare = 1001 }, "R.local.share", "1 to 1000"},
		{"lease of nothing", func(r *descriptor.RuleSpec) { r.Takes, r.Unlimited, r.Lease.None = nil, true, true }, "R.lease", "takes from no bucket"},
		{"lease out of range", func(r *descriptor.RuleSpec) { r.Lease.Max = -1 }, "R.lease", "must be 0 to"},
		{"settle of a bad name", func(r *descriptor.RuleSpec) {
			r.Takes, r.Settle = nil, []descriptor.ConsumeSpec{{Limit: "a b", PerHit: 1000}}
		}, "R.settle.a b", "name"},
		{"override of what is not consumed", func(r *descriptor.RuleSpec) { r.Override = "tpm" }, "R.override", "there is rpm"},
		{"no entity", entity(""), "R.entity", "is empty"},
		{"open brace", entity("key/{a"), "R.entity", "'{{'"},
		{"closing brace", entity("key/a}"), "R.entity", "'}}'"},
		{"no placeholder name", entity("key/{}"), "R.entity", "without a name"},
		{"unknown placeholder", entity("key/{x}"), "R.entity", "there is {a}, {b}"},
		{"adjacent placeholders", entity("{a}{a}"), "R.entity", "nothing between"},
		{"percent after a placeholder", entity("{a}%"), "R.entity", "'%'"},
		{"optional placeholder", entity("{b}"), "R.entity", "only `parent`"},
		{"no resource", take(func(s *descriptor.TakeSpec) { s.Resource = "" }), "R.resource", "is empty"},
		{"parent", take(func(s *descriptor.TakeSpec) { s.Parents = []string{"{x}"} }), "R.parent", "neither a key"},
		{"second parent", take(func(s *descriptor.TakeSpec) { s.Parents = []string{"{b}", "{x}"} }), "R.parent[1]", "neither a key"},
		{"parents", take(func(s *descriptor.TakeSpec) { s.Parents = slices.Repeat([]string{"p"}, 8) }), "R.parent", "at most 7"},
		{"unknown plan", take(func(s *descriptor.TakeSpec) { s.Plan = "gold" }), "R.limits", `there is "free", "paid"`},
		{"plan of an optional key", take(func(s *descriptor.TakeSpec) { s.Plan = "{b}" }), "R.limits", "may be absent"},
		{"plan and limits", take(func(s *descriptor.TakeSpec) { s.Plan, s.Limits = "free", limits(t, limiter.PerDay("rpm", 1)) }), "R.limits", "one of them"},
		{"nothing consumed", take(func(s *descriptor.TakeSpec) { s.Consume = nil }), "R.consume", "is empty"},
		{"nothing reserved", take(func(s *descriptor.TakeSpec) { s.Consume, s.Reserve = nil, true }), "R.reserve", "is empty"},
		{"limit twice", take(func(s *descriptor.TakeSpec) { s.Consume = append(s.Consume, s.Consume[0]) }), "R.consume.rpm", "given twice"},
		{"limit's name", take(func(s *descriptor.TakeSpec) { s.Consume[0].Limit = "1" }), "R.consume.1", "name"},
		{"negative amount", take(func(s *descriptor.TakeSpec) { s.Consume[0].Constant = -1 }), "R.consume.rpm", "must be 0 to"},
		{"great amount", take(func(s *descriptor.TakeSpec) { s.Consume[0].PerHit = tokenbucket.MaxAmount + 1 }), "R.consume.rpm", "must be 0 to"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			spec := descriptor.RuleSpec{
				Path:  "R",
				Match: []descriptor.MatchSpec{{Path: "R.match.a", Key: "a", Value: "*"}, {Path: "R.match.b?", Key: "b", Optional: true, Value: "*"}},
				Takes: []descriptor.TakeSpec{{Path: "R", Entity: "{a}", Resource: "r", Consume: []descriptor.ConsumeSpec{consume("rpm", 1000, 0)}}},
			}
			test.change(&spec)
			rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Rules: []descriptor.RuleSpec{spec}}}, plans(t))
			if rules != nil {
				t.Error("there are rules in spite of a problem")
			}
			found := slices.ContainsFunc(problems, func(p descriptor.Problem) bool {
				return p.Path == test.path && strings.Contains(p.Text, test.text)
			})
			if !found {
				t.Errorf("problems: got %q, want one at %q with %q", problems, test.path, test.text)
			}
		})
	}
}

func TestProblemsOfDomains(t *testing.T) {
	t.Parallel()
	named := func(path, name string) descriptor.RuleSpec {
		r := rule(key("k", "*"))
		r.Path, r.Name = path, name
		return r
	}
	_, problems := descriptor.Compile([]descriptor.DomainSpec{
		{Path: "domains[0]", Domain: "one", Rules: []descriptor.RuleSpec{
			named("domains[0].rules[0]", "rule-2"), named("domains[0].rules[1]", ""), named("domains[0].rules[2]", "rule-2"),
		}},
		{Path: "domains[1]"},
		{Path: "domains[2]", Domain: "one", Rules: []descriptor.RuleSpec{named("domains[2].rules[0]", "rule-2")}},
	}, nil)
	got := make([]string, 0, len(problems))
	for _, p := range problems {
		got = append(got, p.Path+" "+p.Text)
	}
	want := []string{
		`domains[0].rules[1].name "rule-2" is the name of domains[0].rules[0] already; names are unique in a domain`,
		`domains[0].rules[2].name "rule-2" is the name of domains[0].rules[0] already; names are unique in a domain`,
		`domains[1].domain is missing; it is the domain that the gateway's rate limit filter names`,
		`domains[2].domain "one" is the domain of domains[0] already; put its rules there`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestAccessors(t *testing.T) {
	t.Parallel()
	second := rule(key("k", "*"))
	second.OnUnavailable, second.LocalShare = limiter.Local, 300
	second.Takes = append(second.Takes, second.Takes[0])
	rules := compileDomains(t, reference(t), descriptor.DomainSpec{Domain: "d", DenyUnknown: true, Rules: []descriptor.RuleSpec{second}})
	if got := rules.Len(); got != 9 {
		t.Errorf("rules: got %d, want 9", got)
	}
	var index int
	for i, name := range []string{"llm-gateway", "d"} {
		d := rules.Domains()[i]
		if d.Name() != name || d.Namespace() != limiter.DefaultNamespace || d.DenyUnknown() != (i == 1) {
			t.Errorf("domain %d: got %q in %q", i, d.Name(), d.Namespace())
		}
		for _, r := range d.Rules() {
			if r.Index() != index || r.Domain() != d {
				t.Errorf("rule %q: got index %d, want %d", r.Name(), r.Index(), index)
			}
			index++
		}
	}
	r := domain(t, rules).Rules()[0]
	if r.Name() != "rule-1" || r.Path() != "rule" || r.Shadow() || r.OnUnavailable() != limiter.Local || r.LocalShare() != 300 {
		t.Errorf("rule: got %q %q %v %v %d", r.Name(), r.Path(), r.Shadow(), r.OnUnavailable(), r.LocalShare())
	}
	if diff := cmp.Diff([]string{"rpm"}, r.Limits()); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	const never, unreserved, nothing = "can never match", "nothing of it to settle", "no effect"
	open := func(spec descriptor.RuleSpec) descriptor.RuleSpec { spec.Open = true; return spec }
	shadow := func(spec descriptor.RuleSpec) descriptor.RuleSpec { spec.Shadow = true; return spec }
	regex := descriptor.MatchSpec{Key: "a", Regex: "x+"}
	cidr := func(blocks ...string) descriptor.MatchSpec { return descriptor.MatchSpec{Key: "a", CIDR: blocks} }
	reserve := rule(key("a", "*"))
	reserve.Takes[0].Reserve = true
	limit := reserve.Takes[0].Consume[0].Limit
	settle := descriptor.RuleSpec{Match: []descriptor.MatchSpec{key("reservation_id", "*")}, Settle: []descriptor.ConsumeSpec{{Limit: limit, PerHit: 1000}}}
	tests := []struct {
		name  string
		rules []descriptor.RuleSpec
		want  []string
	}{
		{"none", []descriptor.RuleSpec{rule(key("a", "1")), rule(key("a", "2")), rule(key("a", "*"))}, nil},
		{"the same again", []descriptor.RuleSpec{rule(key("a", "1"), key("b", "*")), rule(key("b", "*"), key("a", "1"))}, []string{never}},
		{"all before one", []descriptor.RuleSpec{rule(key("a", "*")), rule(key("a", "1"))}, []string{never}},
		{"all before a regex", []descriptor.RuleSpec{rule(key("a", "*")), rule(regex)}, []string{never}},
		{"the same regex", []descriptor.RuleSpec{rule(regex), rule(regex)}, []string{never}},
		{"a regex before its value", []descriptor.RuleSpec{rule(regex), rule(key("a", "xx")), rule(key("a", "xy"))}, []string{never}},
		{"a prefix before a longer one", []descriptor.RuleSpec{rule(key("a", "x*")), rule(key("a", "xy*z")), rule(key("a", "*x"))}, []string{never}},
		{"a block in a block", []descriptor.RuleSpec{rule(cidr("10.0.0.0/8")), rule(cidr("10.1.0.0/16")), rule(cidr("10.0.0.0/8", "::/0"))}, []string{never}},
		{"shadow before", []descriptor.RuleSpec{shadow(rule(key("a", "*"))), rule(key("a", "1"))}, nil},
		{"shadow after", []descriptor.RuleSpec{rule(key("a", "*")), shadow(rule(key("a", "1")))}, []string{never}},
		{"open before closed", []descriptor.RuleSpec{open(rule(key("a", "*"))), rule(key("a", "1"), key("b", "1"))}, []string{never}},
		{"closed before open", []descriptor.RuleSpec{rule(key("a", "*")), open(rule(key("a", "1")))}, nil},
		{"optional before absent", []descriptor.RuleSpec{rule(key("a", "*"), key("b?", "1")), rule(key("a", "1"))}, []string{never}},
		{"optional before open", []descriptor.RuleSpec{open(rule(key("a", "*"), key("b?", "1"))), open(rule(key("a", "1")))}, nil},
		{"required before optional", []descriptor.RuleSpec{rule(key("a", "*"), key("b", "*")), rule(key("a", "1"), key("b?", "1"))}, nil},
		{"settles what nothing reserves", []descriptor.RuleSpec{settle}, []string{unreserved}},
		{"settles what a rule reserves", []descriptor.RuleSpec{settle, reserve}, nil},
		{"shadow of nothing", []descriptor.RuleSpec{shadow(descriptor.RuleSpec{Match: []descriptor.MatchSpec{key("a", "*")}, Unlimited: true})}, []string{nothing}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := compile(t, test.rules...).Warnings()
			if len(got) != len(test.want) {
				t.Fatalf("warnings: got %q, want %q", got, test.want)
			}
			for i, text := range test.want {
				if !strings.Contains(got[i].Text, text) {
					t.Errorf("warning: got %q, want %q", got[i].Text, text)
				}
			}
		})
	}
	var none *descriptor.Rules
	if got := none.Warnings(); got != nil {
		t.Errorf("warnings of no rules: got %q", got)
	}
}
