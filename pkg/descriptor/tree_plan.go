package descriptor

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// planTree plans a call to a domain of envoyproxy/ratelimit descriptors. All
// descriptors are walked first, as a limit may replace another of the same call.
func (r *Rules) planTree(d *Domain, call *Call, plan *Plan) {
	plan.matched = plan.matched[:0]
	var replaced []string
	for i := range call.Descriptors {
		desc := &call.Descriptors[i]
		rule := d.tree.walk(desc.Entries)
		if desc.Limit != nil && len(desc.Entries) > 0 {
			rule = d.tree.override
		}
		plan.matched = append(plan.matched, rule)
		if rule == nil {
			continue
		}
		for _, name := range rule.leaf.replaces {
			if !slices.Contains(replaced, name) {
				replaced = append(replaced, name)
			}
		}
	}
	for i, rule := range plan.matched {
		p := planner{rules: r, plan: plan, call: call, index: i}
		switch {
		case rule == nil:
			plan.Outcomes = append(plan.Outcomes, Outcome{Kind: Unmatched, Deny: d.denyUnknown})
		case rule.unlimited, rule.leaf.name != "" && slices.Contains(replaced, rule.leaf.name):
			plan.Outcomes = append(plan.Outcomes, Outcome{Kind: Unlimited, Rule: rule})
		case rule.shadow:
			p.shadow(rule, nil)
			plan.Outcomes = append(plan.Outcomes, Outcome{Kind: Unlimited, Rule: rule})
		default:
			plan.Outcomes = append(plan.Outcomes, p.enforce(rule, nil))
		}
	}
}

// leafTakes appends what a rule of a tree takes, like [planner.takes].
func (p *planner) leafTakes(rule *Rule, q demand, takes []limiter.Take) (all []limiter.Take, why string) {
	p.plan.reserved = p.plan.reserved[:0]
	if rule.leaf.blocked {
		if q.mode == limiter.Consume && !q.look {
			why = limiter.ReasonExceedsCapacity.String()
		}
		return takes, why
	}
	t := &rule.takes[0]
	parts, n, why := p.split(rule, t, q, plan{limits: t.limits, of: t.limitsOf})
	for _, part := range parts[:n] {
		if consume := p.consumption(t, q, part, "", ""); len(consume) > 0 {
			takes = append(takes, limiter.Take{
				Entity: p.way(rule.leaf), Resource: rule.domain.name, Limits: part.limits, LimitsOf: part.of,
				Label: rule.label, Consume: consume, Mode: q.mode,
			})
		}
	}
	return takes, why
}

// way returns the name of the bucket: the entries that led to it, "key=value"
// or, where all values of a pattern share it, "key~pattern", with '/' between
// them. It is one-to-one.
func (p *planner) way(l *leaf) string {
	const separators = "=~"
	buf := p.plan.text[:0]
	for i, e := range p.call.Descriptors[p.index].Entries {
		if i > 0 {
			buf = append(buf, '/')
		}
		buf = appendEscaped(buf, e.Key, separators)
		if i < len(l.shared) && l.shared[i] != "" {
			buf = append(buf, '~')
			buf = appendEscaped(buf, l.shared[i], "")
		} else {
			buf = append(buf, '=')
			buf = appendEscaped(buf, e.Value, "")
		}
	}
	p.plan.text = buf
	return string(buf)
}
