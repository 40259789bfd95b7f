package descriptor

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// hidingSlowly is the definition of warner.hiding.
func hidingSlowly(r *Rule) *Rule {
	for _, earlier := range r.domain.rules[:r.order] {
		if !earlier.shadow && earlier.covers(r) {
			return earlier
		}
	}
	return nil
}

func TestHidingRulesAreFound(t *testing.T) {
	t.Parallel()
	patterns := []MatchSpec{
		{Value: "*"},
		{Value: "a"},
		{Value: "ab"},
		{Value: ""},
		{Value: "a*"},
		{Value: "ab*"},
		{Value: "*b"},
		{Value: "a*b"},
		{Regex: "a+"},
		{Regex: "a|b"},
		{CIDR: []string{"10.0.0.0/8"}},
		{CIDR: []string{"10.1.0.0/16"}},
		{Value: "10.1.2.3"},
	}
	keys := []string{"k", "l", "m", "n", "o"}
	rapid.Check(t, func(t *rapid.T) {
		rules := make([]RuleSpec, rapid.IntRange(2, 12).Draw(t, "rules"))
		for i := range rules {
			r := &rules[i]
			r.Unlimited, r.Open, r.Shadow = true, rapid.Bool().Draw(t, "open"), rapid.IntRange(0, 4).Draw(t, "shadow") == 0
			for _, key := range keys {
				if what := rapid.SampledFrom([]string{"", "", "must", "may"}).Draw(t, key); what != "" {
					m := rapid.SampledFrom(patterns).Draw(t, "pattern")
					m.Key, m.Optional = key, what == "may"
					r.Match = append(r.Match, m)
				}
			}
			r.Open = r.Open || len(r.Match) == 0
		}
		compiled, problems := Compile([]DomainSpec{{Domain: "d", Rules: rules}}, nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		w := warner{compared: maxCompared}
		for _, r := range compiled.rules {
			if got, want := w.hiding(r), hidingSlowly(r); got != want {
				t.Errorf("rule %d: got hidden by %v, want %v", r.order, got, want)
			}
		}
	})
}

// The time for warnings does not grow with the square of the number of rules.
func TestWarningsOfManyRulesAreCheap(t *testing.T) {
	t.Parallel()
	const rules = 10_000
	tests := []struct {
		name  string
		match func(i int) MatchSpec
		most  int // pairs compared
	}{
		{"exact", func(i int) MatchSpec { return MatchSpec{Value: fmt.Sprint("k", i)} }, 0},
		{"prefix", func(i int) MatchSpec { return MatchSpec{Value: fmt.Sprint("k", i, "-*")} }, 0},
		{"the same", func(int) MatchSpec { return MatchSpec{Value: "*"} }, rules},
		{"suffix", func(i int) MatchSpec { return MatchSpec{Value: fmt.Sprint("*-k", i)} }, maxCompared},
		{"regex", func(i int) MatchSpec { return MatchSpec{Regex: fmt.Sprint("k", i, ".*")} }, maxCompared},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			specs := make([]RuleSpec, rules)
			for i := range specs {
				m := test.match(i)
				m.Key = "key"
				specs[i] = RuleSpec{Match: []MatchSpec{m, {Key: "model", Value: "*"}}, Unlimited: true}
			}
			compiled, problems := Compile([]DomainSpec{{Domain: "d", Rules: specs}}, nil)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			w := warner{compared: maxCompared}
			for _, r := range compiled.rules {
				w.rule(r)
			}
			if got := maxCompared - w.compared; got > test.most {
				t.Errorf("compared %d pairs of rules, want at most %d", got, test.most)
			}
		})
	}
}
