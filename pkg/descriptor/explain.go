package descriptor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Explanation says which rule a descriptor matches, with which effect, and why. Its texts quote
// values; the plan has them as they are. In a domain of envoyproxy/ratelimit descriptors it names
// only the rule that matched.
type Explanation struct {
	Domain  *Domain  // nil when unknown
	Rule    *Rule    // that matched; nil when none did
	Missed  []Missed // the rules before it, which did not match, in order; all rules when none matched
	Shadows []*Rule  // the shadow rules that matched, in order
	Plan    Plan     // of a call with this descriptor only
	Nearest Nearest  // when no rule matched
	Plans   []string // for each take in Plan.Request the name of the plan that its limits are from; "" = none
}

// Missed is a rule that did not match, with the reason.
type Missed struct {
	Rule *Rule
	Why  string // "key model missing", `api_key "x" does not match "admin-*"`
}

// Explain explains the descriptor in a call without a number of hits, where no earlier use is known.
func (r *Rules) Explain(domain string, desc *Descriptor) Explanation {
	return r.ExplainBy(nil, domain, desc)
}

// ExplainBy is as Explain, with estimates from earlier use; nil = none.
func (r *Rules) ExplainBy(estimates Estimator, domain string, desc *Descriptor) Explanation {
	var e Explanation
	r.Plan(&Call{Domain: domain, Descriptors: []Descriptor{*desc}, Estimates: estimates}, &e.Plan)
	d := e.Plan.Domain
	if d == nil {
		return e
	}
	e.Domain, e.Rule = d, e.Plan.Outcomes[0].Rule
	if e.Rule == nil {
		e.Nearest = d.nearest(desc)
	}
	if d.tree != nil || d.limits != nil {
		return e
	}
	v := d.view(desc.Entries, nil)
	for _, rule := range d.rules {
		if rule == e.Rule {
			break
		}
		if why := rule.mismatch(&v); why != "" {
			e.Missed = append(e.Missed, Missed{Rule: rule, Why: why})
		} else {
			e.Shadows = append(e.Shadows, rule)
		}
	}
	e.Plans = make([]string, len(e.Plan.Request.Takes))
	for i := range e.Plans {
		e.Plans[i] = r.planOf(e.Plan.Request.Takes[i].Limits)
	}
	return e
}

// planOf returns the name of the plan with the limits; "" when no plan has them.
func (r *Rules) planOf(limits *limiter.Limits) string {
	found := ""
	for name, set := range r.limitSets {
		if limits != nil && set.limits == limits && (found == "" || name < found) {
			found = name
		}
	}
	return found
}

// String returns the explanation for people, one finding a line.
func (e *Explanation) String() string {
	var b strings.Builder
	switch {
	case e.Domain == nil:
		b.WriteString("domain: unknown, so no rule matches\n")
		return b.String()
	case e.Rule == nil && e.Domain.denyUnknown:
		fmt.Fprintf(&b, "rule: none in domain %s; the descriptor is denied\n", clip(e.Domain.name))
	case e.Rule == nil:
		fmt.Fprintf(&b, "rule: none in domain %s; the descriptor is admitted\n", clip(e.Domain.name))
	default:
		fmt.Fprintf(&b, "rule: %s (%s)\n", clip(e.Rule.name), e.Rule.path)
	}
	if e.Rule != nil {
		e.writeOutcome(&b)
	}
	for i := range e.Plan.Shadows {
		s := &e.Plan.Shadows[i]
		fmt.Fprintf(&b, "shadow rule: %s\n", clip(s.Rule.name))
		for j := range s.Request.Takes {
			writeTake(&b, verbOf(s.Request.Takes[j].Mode), &s.Request.Takes[j], "")
		}
	}
	for _, m := range e.Missed {
		fmt.Fprintf(&b, "not rule %s: %s\n", clip(m.Rule.name), m.Why)
	}
	return b.String()
}

func (e *Explanation) writeOutcome(b *strings.Builder) {
	switch out := &e.Plan.Outcomes[0]; out.Kind {
	case Unlimited:
		b.WriteString("  unlimited: admitted, and nothing is taken\n")
	case Beside:
		b.WriteString("  with the first descriptor\n")
	case Exempt:
		b.WriteString("  exempt: the whole call is admitted, and nothing is taken\n")
	case Settles:
		if len(e.Rule.limits) == 0 {
			b.WriteString("  ends a request in flight\n")
			return
		}
		fmt.Fprintf(b, "  settles a reservation to the amount used: %s\n", strings.Join(e.Rule.limits, ", "))
	case Denied:
		fmt.Fprintf(b, "  denied: %s\n", out.Why)
	case Takes:
		for i := range e.Plan.Request.Takes {
			t := &e.Plan.Request.Takes[i]
			verb := verbOf(t.Mode)
			if slices.ContainsFunc(e.Plan.Reserves, func(r Reserve) bool { return r.Take == i }) {
				verb = "reserve"
			}
			writeTake(b, verb, t, e.Plans[i])
		}
		if e.Rule.lease != (limiter.LeasePolicy{}) {
			fmt.Fprintf(b, "  lease: %s\n", e.Rule.lease)
		}
	case Unmatched:
	}
}

func verbOf(mode limiter.Mode) string {
	return [...]string{limiter.Consume: "take", limiter.Charge: "charge", limiter.Refund: "give back"}[mode]
}

// writeTake writes one take.
func writeTake(b *strings.Builder, verb string, t *limiter.Take, plan string) {
	fmt.Fprintf(b, "  %s: entity %s, resource %s\n", verb, clip(t.Entity), clip(t.Resource))
	for _, parent := range t.Parents {
		fmt.Fprintf(b, "    parent: %s\n", clip(parent))
	}
	switch {
	case plan != "":
		fmt.Fprintf(b, "    plan: %s\n", clip(plan))
	case t.Limits != nil:
		b.WriteString("    limits: its own\n")
	}
	for i := range t.Limits.Len() {
		l := t.Limits.At(i)
		fmt.Fprintf(b, "    limit: %s %s\n", l.Name, l.String())
	}
	for _, c := range t.Consume {
		if c.Amount == 0 {
			fmt.Fprintf(b, "    %s: a look\n", c.Limit)
		} else {
			fmt.Fprintf(b, "    %s: %s\n", c.Limit, tokens(c.Amount))
		}
	}
}

// tokens returns an amount of millitokens in tokens.
func tokens(milli int64) string {
	whole, rest := milli/limiter.Milli, milli%limiter.Milli
	if rest == 0 {
		return strconv.FormatInt(whole, 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%03d", whole, rest), "0")
}
