package descriptor_test

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// compile compiles one domain called "d" with the rules.
func compile(tb testing.TB, rules ...descriptor.RuleSpec) *descriptor.Rules {
	tb.Helper()
	return compileDomains(tb, descriptor.DomainSpec{Path: "domains[0]", Domain: "d", Rules: rules})
}

func compileDomains(tb testing.TB, domains ...descriptor.DomainSpec) *descriptor.Rules {
	tb.Helper()
	rules, problems := descriptor.Compile(domains, plans(tb))
	if len(problems) > 0 {
		tb.Fatalf("problems: %v", problems)
	}
	return rules
}

// domain returns the domain "d".
func domain(tb testing.TB, rules *descriptor.Rules) *descriptor.Domain {
	tb.Helper()
	d, ok := rules.Domain("d")
	if !ok {
		tb.Fatal("no domain d")
	}
	return d
}

// rule is a rule that takes 1 of rpm.
func rule(match ...descriptor.MatchSpec) descriptor.RuleSpec {
	return descriptor.RuleSpec{
		Path: "rule", Match: match,
		Takes: []descriptor.TakeSpec{{Path: "rule", Entity: "e", Resource: "r", Consume: []descriptor.ConsumeSpec{{Limit: "rpm", Constant: 1000}}}},
	}
}

// key asks for a key with a value; "key?" for an optional one.
func key(name, value string) descriptor.MatchSpec {
	key, optional := strings.CutSuffix(name, "?")
	return descriptor.MatchSpec{Path: "match." + name, Key: key, Optional: optional, Value: value}
}

// entries makes a descriptor of keys and values in turn.
func entries(keysAndValues ...string) descriptor.Descriptor {
	var d descriptor.Descriptor
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		d.Entries = append(d.Entries, descriptor.Entry{Key: keysAndValues[i], Value: keysAndValues[i+1]})
	}
	return d
}

// ruleName returns the name of a rule, "" for none.
func ruleName(r *descriptor.Rule) string {
	if r == nil {
		return ""
	}
	return r.Name()
}

func TestValues(t *testing.T) {
	t.Parallel()
	regex := func(text string) descriptor.MatchSpec { return descriptor.MatchSpec{Key: "k", Regex: text} }
	cidr := func(blocks ...string) descriptor.MatchSpec { return descriptor.MatchSpec{Key: "k", CIDR: blocks} }
	tests := []struct {
		pattern descriptor.MatchSpec
		yes, no []string
	}{
		{key("k", "abc"), []string{"abc"}, []string{"", "ab", "abcd", "ABC", "abc "}},
		{key("k", ""), []string{""}, []string{"a", "*"}},
		{key("k", "*"), []string{"", "a", "\xff", "a\nb", "*"}, nil},
		{key("k", "**"), []string{"", "a"}, nil},
		{key("k", "ab*"), []string{"ab", "abc", "ab\xff\n"}, []string{"a", "xab", ""}},
		{key("k", "*ab"), []string{"ab", "xab", "abab"}, []string{"abx", "b"}},
		{key("k", "a*a"), []string{"aa", "aba", "aaa"}, []string{"a", "ab", ""}},
		{key("k", "a*b*c"), []string{"abc", "aXbYc", "abbcc"}, []string{"acb", "ac", "bc"}},
		{key("k", "*ab*ab*"), []string{"abab", "xabyabz"}, []string{"aba", "ab"}},
		{key("k", "a**b"), []string{"ab", "axb"}, []string{"a"}},
		{regex("a+"), []string{"a", "aaa"}, []string{"", "ba", "ab", "a\n"}},
		{regex("a|b"), []string{"a", "b"}, []string{"ab", "xa", "bx"}},
		{regex(".*"), []string{"", "a\nb", "\xff\xfe"}, nil},
		{regex(`\Qa.b`), []string{"a.b"}, []string{"axb"}},
		{regex("(?i)abc"), []string{"ABC"}, []string{"ABCD"}},
		{
			cidr("10.0.0.0/8", "fd00::/8"),
			[]string{"10.1.2.3", "10.0.0.0/24", "10.0.0.0/8", "fd00::1", "fdff::/64", "::ffff:10.1.2.3", "::ffff:10.0.0.0/120", "fd00::1%eth0"},
			[]string{"11.0.0.1", "10.0.0.0/7", "0.0.0.0/0", "fe80::1", "", "10", "10.0.0.1:80", "10.0.0.1%x", "::10.0.0.1", "/8", "x/8", "10.0.0.1/", strings.Repeat("1", 1<<20)},
		},
		{cidr("::ffff:10.0.0.0/104"), []string{"10.1.2.3", "::ffff:10.1.2.3"}, []string{"11.0.0.1"}},
		{cidr("0.0.0.0/0"), []string{"1.2.3.4"}, []string{"::1"}},
	}
	for _, test := range tests {
		rules := compile(t, rule(test.pattern))
		for _, value := range test.yes {
			desc := entries("k", value)
			if domain(t, rules).Match(&desc) == nil {
				t.Errorf("%+v does not match %q", test.pattern, value)
			}
		}
		for _, value := range test.no {
			desc := entries("k", value)
			if domain(t, rules).Match(&desc) != nil {
				t.Errorf("%+v matches %q", test.pattern, value)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	open := rule(key("a", "1"))
	open.Open = true
	all := descriptor.RuleSpec{Unlimited: true, Open: true}
	tests := []struct {
		name string
		rule descriptor.RuleSpec
		desc descriptor.Descriptor
		want bool
	}{
		{"any order", rule(key("a", "1"), key("b", "2")), entries("b", "2", "a", "1"), true},
		{"key missing", rule(key("a", "1"), key("b", "2")), entries("a", "1"), false},
		{"key too many", rule(key("a", "1")), entries("a", "1", "b", "2"), false},
		{"unknown key too many", rule(key("a", "1")), entries("a", "1", "zz", "2"), false},
		{"optional key absent", rule(key("a", "1"), key("b?", "2")), entries("a", "1"), true},
		{"optional key there", rule(key("a", "1"), key("b?", "2")), entries("a", "1", "b", "2"), true},
		{"optional key with another value", rule(key("a", "1"), key("b?", "2")), entries("a", "1", "b", "3"), false},
		{"open", open, entries("x", "", "a", "1", "y", ""), true},
		{"open, key missing", open, entries("x", ""), false},
		{"open without keys", all, entries("x", ""), true},
		{"open without keys, no entries", all, entries(), true},
		{"no entries", rule(key("a", "1")), entries(), false},
		{"key twice, first matches", rule(key("a", "1")), entries("a", "1", "a", "2"), true},
		{"key twice, second matches", rule(key("a", "1")), entries("a", "2", "a", "1"), true},
		{"key twice, none matches", rule(key("a", "1")), entries("a", "2", "a", "3"), false},
		{"key with a strange name", rule(key("\xff #/", "1")), entries("\xff #/", "1"), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := domain(t, compile(t, test.rule)).Match(&test.desc) != nil; got != test.want {
				t.Errorf("matches: got %v, want %v", got, test.want)
			}
		})
	}
}

func TestRepeatedKeysAreBounded(t *testing.T) {
	t.Parallel()
	d := domain(t, compile(t, rule(key("k", "x")), rule(key("k", "y*"))))
	for n, want := range map[int]string{62: "rule-1", 63: "rule-1", 64: "", 100_000: ""} {
		var desc descriptor.Descriptor
		for range n {
			desc.Entries = append(desc.Entries, descriptor.Entry{Key: "k", Value: "z"})
		}
		desc.Entries = append(desc.Entries, descriptor.Entry{Key: "k", Value: "x"})
		if got := ruleName(d.Match(&desc)); got != want {
			t.Errorf("match after %d other values: got %q, want %q", n, got, want)
		}
	}
}

// TestMatchIsFirstMatch compares the index with a comparison of every rule in turn.
func TestMatchIsFirstMatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs := rapid.SliceOfN(rapid.Custom(drawRule), 1, 30).Draw(t, "rules")
		for i := range specs {
			specs[i].Name = fmt.Sprintf("r%d", i)
		}
		rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Rules: specs}}, nil)
		if len(problems) > 0 {
			t.Fatalf("problems: %v", problems)
		}
		var plan descriptor.Plan
		for range 10 {
			desc := rapid.Custom(drawDescriptor).Draw(t, "descriptor")
			want, wantShadows := firstMatch(specs, desc)
			d, _ := rules.Domain("d")
			if got := ruleName(d.Match(&desc)); got != want {
				t.Fatalf("rule: got %q, want %q", got, want)
			}
			rules.Plan(&descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{desc}}, &plan)
			shadows := make([]string, len(plan.Shadows))
			for i, s := range plan.Shadows {
				shadows[i] = s.Rule.Name()
			}
			if diff := cmp.Diff(wantShadows, shadows, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("shadows (-want +got):\n%s", diff)
			}
			explained := rules.Explain("d", &desc)
			if got := ruleName(explained.Rule); got != want {
				t.Fatalf("explained rule: got %q, want %q", got, want)
			}
			if got := len(explained.Shadows); got != len(wantShadows) {
				t.Fatalf("explained shadows: got %d, want %d", got, len(wantShadows))
			}
		}
	})
}

var keyNames = []string{"a", "b", "c", "d", "e"}

func drawRule(t *rapid.T) descriptor.RuleSpec {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(keyNames), 1, 5, rapid.ID).Draw(t, "keys")
	match := make([]descriptor.MatchSpec, 0, len(names))
	for _, name := range names {
		m := descriptor.MatchSpec{Key: name, Optional: rapid.IntRange(0, 3).Draw(t, "optional") == 0}
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			m.Regex = rapid.SampledFrom([]string{"x+", "(x|y).*", ".*z", "x?y?"}).Draw(t, "regex")
		case 1:
			m.CIDR = rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.0/8", "10.1.0.0/16", "fd00::/8"}), 1, 2).Draw(t, "cidr")
		case 2:
			stars := rapid.SampledFrom([]string{"xyz", "xyz*"}).Draw(t, "letters")
			most := rapid.SampledFrom([]int{3, 12}).Draw(t, "most values") // two lists of 12 are too many to spell out
			m.Values = rapid.SliceOfNDistinct(rapid.StringOfN(rapid.SampledFrom([]rune(stars)), 0, 4, -1), 1, most, rapid.ID).Draw(t, "values")
		default:
			m.Value = rapid.StringOfN(rapid.SampledFrom([]rune("xyz**")), 0, 4, -1).Draw(t, "value")
		}
		match = append(match, m)
	}
	spec := rule(match...)
	spec.Open = rapid.IntRange(0, 3).Draw(t, "open") == 0
	spec.Shadow = rapid.IntRange(0, 3).Draw(t, "shadow") == 0
	return spec
}

func drawDescriptor(t *rapid.T) descriptor.Descriptor {
	n := rapid.SampledFrom([]int{5, 5, 5, 5, 24}).Draw(t, "most entries")
	return descriptor.Descriptor{Entries: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) descriptor.Entry {
		return descriptor.Entry{
			Key: rapid.SampledFrom(append([]string{"other"}, keyNames...)).Draw(t, "key"),
			Value: rapid.OneOf(
				rapid.StringOfN(rapid.SampledFrom([]rune("xyz")), 0, 4, -1),
				rapid.SampledFrom([]string{"10.1.2.3", "10.2.0.0/16", "fd00::1", "1.2.3.4"}),
			).Draw(t, "value"),
		}
	}), 0, n).Draw(t, "entries")}
}

// firstMatch is matching by its description. It returns the name of the first enforcing rule that
// matches, and those of the shadow rules that match before it.
func firstMatch(specs []descriptor.RuleSpec, desc descriptor.Descriptor) (winner string, shadows []string) {
	for _, spec := range specs {
		switch {
		case !specMatches(spec, desc):
		case spec.Shadow:
			shadows = append(shadows, spec.Name)
		default:
			return spec.Name, shadows
		}
	}
	return "", shadows
}

func specMatches(spec descriptor.RuleSpec, desc descriptor.Descriptor) bool {
	values := map[string][]string{}
	for _, e := range desc.Entries {
		values[e.Key] = append(values[e.Key], e.Value)
	}
	for _, m := range spec.Match {
		found, there := false, len(values[m.Key]) > 0
		for _, value := range values[m.Key] {
			found = found || valueMatches(m, value)
		}
		if there && !found || !there && !m.Optional {
			return false
		}
		delete(values, m.Key)
	}
	return spec.Open || len(values) == 0
}

func valueMatches(m descriptor.MatchSpec, value string) bool {
	switch {
	case len(m.Values) > 0:
		return slices.ContainsFunc(m.Values, func(of string) bool { return valueMatches(descriptor.MatchSpec{Value: of}, value) })
	case m.Regex != "":
		regex := regexp.MustCompile("(?s)" + m.Regex)
		regex.Longest()
		found := regex.FindStringIndex(value)
		return found != nil && found[0] == 0 && found[1] == len(value)
	case len(m.CIDR) > 0:
		addr, length, isBlock := strings.Cut(value, "/")
		ip := net.ParseIP(addr)
		for _, text := range m.CIDR {
			_, block, _ := net.ParseCIDR(text)
			ones, _ := block.Mask.Size()
			var asked int
			if _, err := fmt.Sscan(length, &asked); isBlock && (err != nil || asked < ones) {
				continue
			}
			if ip != nil && block.Contains(ip) {
				return true
			}
		}
		return false
	default:
		return globMatches(m.Value, value)
	}
}

// globMatches follows all ways through the pattern at once.
func globMatches(pattern, value string) bool {
	at := map[int]bool{0: true} // places in the pattern that the value so far may lead to
	skipStars := func() {
		for i := range len(pattern) {
			if at[i] && pattern[i] == '*' {
				at[i+1] = true
			}
		}
	}
	for v := range len(value) {
		skipStars()
		next := map[int]bool{}
		for i := range at {
			switch {
			case i == len(pattern):
			case pattern[i] == '*':
				next[i] = true
			case pattern[i] == value[v]:
				next[i+1] = true
			}
		}
		at = next
	}
	skipStars()
	return at[len(pattern)]
}
