package descriptor

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// planTree plans a call to a domain of envoyproxy/ratelimit descriptors. It finds the limits of all
// descriptors first, as one may replace another of the same call.
func (r *Rules) planTree(d *Domain, call *Call, plan *Plan) {
	plan.matched = plan.matched[:0]
	var replaced []string
	now := call.Now.UnixMilli()
	for i := range call.Descriptors {
		desc := &call.Descriptors[i]
		limit, rule := d.tree.find(desc)
		plan.matched = append(plan.matched, rule)
		if rule == nil {
			continue
		}
		if !desc.Refund && !call.brings(desc) {
			call.Asked.note(limit, now)
		}
		for _, name := range rule.leaf.replaces {
			if !slices.Contains(replaced, name) {
				replaced = append(replaced, name)
			}
		}
	}
	for i, rule := range plan.matched {
		p := planner{rules: r, plan: plan, call: call, index: i}
		p.charged = rule != nil && p.overdraws(d.tree, now)
		out := p.leaf(d, rule, replaced)
		out.Quota = out.Quota || call.AllQuota
		plan.Quota = plan.Quota || out.Quota
		plan.Outcomes = append(plan.Outcomes, out)
	}
}

// leaf plans one descriptor with the rule of its limit.
func (p *planner) leaf(d *Domain, rule *Rule, replaced []string) Outcome {
	switch {
	case rule == nil:
		return Outcome{Kind: Unmatched, Deny: d.denyUnknown}
	case rule.unlimited:
		return Outcome{Kind: Unlimited, Rule: rule, Silent: rule.leaf.free}
	case rule.leaf.quoted.Name != "" && slices.Contains(replaced, rule.leaf.quoted.Name):
		return Outcome{Kind: Unlimited, Rule: rule, Silent: true}
	case rule.shadow:
		p.shadow(rule, nil)
		return Outcome{Kind: Unlimited, Rule: rule, Quota: rule.leaf.quota}
	}
	out := p.enforce(rule, nil)
	out.Quota = rule.leaf.quota
	p.plan.Answers = p.plan.Answers || out.Peek
	return out
}

// find returns the limit that the entries of a descriptor lead to, and the rule for its take. That
// is another rule if the descriptor has a limit of its own. Both are nil when there is no limit.
func (t *tree) find(desc *Descriptor) (limit, rule *Rule) {
	limit = t.walk(desc.Entries)
	if desc.Limit == nil || len(desc.Entries) == 0 {
		return limit, limit
	}
	if limit == nil {
		limit = t.override
	}
	return limit, t.override
}

// brings reports whether the call has a number above 0 for the descriptor.
func (c *Call) brings(desc *Descriptor) bool {
	if desc.HitsSet {
		return desc.Hits > 0
	}
	return c.Hits > 0
}

// overdraws reports whether the descriptor is a charge.
func (p *planner) overdraws(t *tree, now int64) bool {
	desc := &p.call.Descriptors[p.index]
	if desc.Refund || !p.call.brings(desc) {
		return false
	}
	switch t.overdraw {
	case OverdrawAlways:
		return true
	case OverdrawNever:
		return false
	case OverdrawAuto:
	}
	limit, _ := t.find(desc)
	return !p.call.NoGuess && p.call.Asked.charges(limit, now)
}

// leafTakes appends the takes of a rule of a tree, like [planner.takes].
func (p *planner) leafTakes(rule *Rule, q demand, takes []limiter.Take) (all []limiter.Take, why string) {
	p.plan.reserved = p.plan.reserved[:0]
	if rule.leaf.blocked {
		if (q.mode == limiter.Consume || q.answers) && !q.peek {
			why = limiter.ReasonExceedsCapacity.String()
		}
		return takes, why
	}
	t := &rule.takes[0]
	parts, n, why := p.split(rule, t, q, t.own)
	for _, part := range parts[:n] {
		if consume := p.consumption(t, q, part, "", ""); len(consume) > 0 {
			takes = append(takes, limiter.Take{
				Entity: p.way(rule.leaf), Resource: rule.domain.name, Limits: part.limits, LimitsOf: part.of, LimitsBy: part.by, Given: part.given,
				Label: rule.label, Shadow: rule.shadow, Consume: consume, Mode: q.mode,
			})
		}
	}
	return takes, why
}

// way returns the name of the bucket: the entries that led to it, with '/' between them. An entry
// is "key=value", or "key~pattern" if all values of a pattern share the bucket. Different buckets
// have different names.
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
