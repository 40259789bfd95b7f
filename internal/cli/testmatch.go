package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// noRule stands for the rule of a call that none matches.
const noRule = "none"

// matchingRules are the rules that the descriptors of a call match, also in shadow mode.
type matchingRules struct {
	names []string // each once
	why   string   // there is none
}

// matching returns the rules of a call. The answer of the service names that of a denial alone.
func (p *testPlayer) matching(text string) (m matchingRules, err error) {
	call, err := rls.ParseCall([]byte(text))
	if err != nil {
		return m, err
	}
	call.Now = p.start.Add(p.at())
	var plan descriptor.Plan
	p.rules.Plan(call, &plan)
	add := func(rule *descriptor.Rule) {
		if rule != nil && !slices.Contains(m.names, rule.Name()) {
			m.names = append(m.names, rule.Name())
		}
	}
	for i := range plan.Outcomes {
		add(plan.Outcomes[i].Rule)
	}
	for _, rule := range plan.Applied { // all limits of limitador that count
		add(rule)
	}
	for i := range plan.Shadows {
		add(plan.Shadows[i].Rule)
	}
	if len(m.names) == 0 {
		m.why = whyNoRule(p.rules, call)
	}
	return m, nil
}

// whyNoRule says why no rule matches a call, by its first descriptor.
func whyNoRule(rules *descriptor.Rules, call *descriptor.Call) string {
	found := rules.Explain(call.Domain, &call.Descriptors[0])
	near := found.Nearest
	switch {
	case found.Domain == nil:
		why := fmt.Sprintf("there is no domain %q", call.Domain)
		if closest := rules.NearestDomain(call.Domain); closest != "" {
			why += fmt.Sprintf("; did you mean %q?", closest)
		}
		return why
	case near.Why == "":
		return fmt.Sprintf("the domain %q has no rule", call.Domain)
	case near.Rule == nil:
		return near.Why
	}
	return "the nearest is " + near.Rule.Name() + ": " + near.Why
}

// rule is the rule that denied, or those that a call without such a rule matches; "none" = there is none.
func (a *testAnswer) rule() string {
	if denied := a.Metadata.Rule; denied != "" {
		return denied
	}
	if len(a.Rules.names) == 0 {
		return noRule
	}
	return strings.Join(a.Rules.names, ", ")
}

// hasRule reports whether an expected rule is one of the answer.
func (a *testAnswer) hasRule(want string) bool {
	return want == a.rule() || a.Metadata.Rule == "" && slices.Contains(a.Rules.names, want)
}

// unmatched returns the failure of a call that no rule matches: its test would check nothing.
func (a *testAnswer) unmatched() mismatch {
	return mismatch{"rule", "one that matches, or rule: none where none should", noRule + ": " + a.Rules.why}
}
