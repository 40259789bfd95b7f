package rls

import (
	"cmp"
	"math"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// appendMetadata appends the dynamic metadata. Its parts are the limit that denied, a late
// decision, the policy that decided, and shadow rules that would have denied. Further parts are the
// reservation and the results of settlements. An answer with none of these gets no metadata.
func (c *call) appendMetadata(b []byte, refused *refusal) []byte {
	if ofFile(&c.plan) && c.options.Files.Metadata != OwnMetadata {
		if c.options.Files.Metadata == RulesMetadata {
			b = appendRulesMetadata(b, c)
		}
		return b
	}
	shadow := slices.ContainsFunc(c.shadows, func(r shadowResult) bool { return r.denied })
	quota := slices.ContainsFunc(c.plan.Outcomes, c.quotaOver)
	if !c.verdict.denied && !c.verdict.late && c.verdict.policy == limiter.Unset && !shadow && !quota && !c.reserved.any && len(c.settlements) == 0 {
		return b
	}
	b, mark := begin(b, responseMetadata)
	if c.verdict.denied {
		b = c.appendDenial(b, refused)
	}
	if c.verdict.late {
		b = appendBool(b, "late", true)
	}
	if c.verdict.policy != limiter.Unset {
		b = appendText(b, "degraded", c.verdict.policy.String())
	}
	if shadow {
		b = c.appendShadows(b)
	}
	if quota {
		b = c.appendQuotas(b)
	}
	b = c.appendReserved(b)
	b = c.appendSettlements(b)
	return end(b, mark)
}

func (c *call) appendDenial(b []byte, refused *refusal) []byte {
	b = appendText(b, "reason", c.verdict.reason)
	if refused.ofRule != 0 {
		b = appendNumber(b, "status", int64(refused.ofRule))
	}
	if c.in.Domain != "" {
		b = appendText(b, "domain", c.in.Domain)
	}
	switch s := c.denier(); {
	case s != nil:
		b = c.appendStatusMetadata(b, s)
	case c.decision.Reason == limiter.ReasonDisabled:
		b = c.appendDisabled(b)
	case c.decision.Reason == limiter.ReasonNotConfigured:
		t := &c.plan.Request.Takes[c.decision.MissingTake]
		b = appendRule(b, c.ruleOf(c.decision.MissingTake))
		b = appendText(b, "entity", t.Entity)
		b = appendText(b, "resource", t.Resource)
		b = appendText(b, "limit", c.decision.MissingLimit)
	default:
		b = appendRule(b, c.firstOver())
	}
	return b
}

// appendDisabled appends the kind and the name of the disabled subject.
func (c *call) appendDisabled(b []byte) []byte {
	d := &c.decision.Disabled
	b = appendRule(b, c.ruleOf(d.Take))
	b = appendText(b, "disabled", d.Kind())
	switch d.Subject.Kind {
	case limiter.RefEntity:
		b = appendText(b, "entity", d.Subject.Entity)
		b = appendNumber(b, "level", int64(d.Level))
	case limiter.RefResourceLimits:
		b = appendText(b, "resource", d.Subject.Resource)
	case limiter.RefSystemLimits:
		b = appendText(b, "namespace", cmp.Or(c.plan.Request.Namespace, limiter.DefaultNamespace))
		if d.State != limiter.NamespaceActive {
			b = appendText(b, "state", d.State.String())
		}
	case limiter.RefEntityLimits: // impossible
	}
	return b
}

func (c *call) appendStatusMetadata(b []byte, s *limiter.LimitStatus) []byte {
	b = appendRule(b, c.ruleOf(s.Take))
	b = appendText(b, "entity", s.Entity)
	b = appendNumber(b, "level", int64(s.Level))
	b = appendText(b, "resource", s.Resource)
	b = appendText(b, "limit", s.Limit.Name)
	b = appendText(b, "source", s.Source.String())
	b = appendNumber(b, "remaining", wholeTokens(s.Available))
	if seconds := c.retryAfter(); seconds > 0 {
		b = appendNumber(b, "retry_after", seconds)
	}
	return b
}

func appendRule(b []byte, rule *descriptor.Rule) []byte {
	if rule == nil {
		return b
	}
	return appendText(b, "rule", rule.Name())
}

func (c *call) appendShadows(b []byte) []byte {
	b, field, value := beginField(b, "shadow")
	b, list := begin(b, valueList)
	for _, r := range c.shadows {
		if !r.denied {
			continue
		}
		var item, object int
		b, item = begin(b, listValues)
		b, object = begin(b, valueStruct)
		b = appendText(b, "rule", r.rule.Name())
		b = appendNumber(b, "descriptor", int64(r.descriptor))
		if r.limit != "" {
			b = appendText(b, "limit", r.limit)
		}
		b = appendBool(b, "would_deny", true)
		b = end(end(b, object), item)
	}
	return end(end(end(b, list), value), field)
}

// quotaOver reports whether a descriptor of quota_mode is over its limit.
func (c *call) quotaOver(o descriptor.Outcome) bool { return o.Quota && c.exceeded(&o) }

// appendQuotas appends the descriptors of quota_mode that are over their limits.
func (c *call) appendQuotas(b []byte) []byte {
	b, field, value := beginField(b, "quota")
	b, list := begin(b, valueList)
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		if !c.quotaOver(*o) {
			continue
		}
		var item, object int
		b, item = begin(b, listValues)
		b, object = begin(b, valueStruct)
		b = appendRule(b, o.Rule)
		b = appendNumber(b, "descriptor", int64(i))
		b = end(end(b, object), item)
	}
	return end(end(end(b, list), value), field)
}

// appendReserved appends the reservation with its id.
func (c *call) appendReserved(b []byte) []byte {
	if !c.reserved.any {
		return b
	}
	if c.reserved.amounts {
		b = appendNumber(b, "reserved", int64(min(c.reserved.hits, math.MaxInt64))) // #nosec G115 -- it fits
	}
	if c.reserved.id != "" {
		b = appendID(b, c.reserved.id)
	}
	return b
}

// appendID appends the id unchanged, as a cut or escaped id could not be settled. No character of
// an id needs escaping.
func appendID(b []byte, id string) []byte {
	b, field, value := beginField(b, "reservation_id")
	b, mark := begin(b, valueString)
	b = append(b, id...)
	return end(end(end(b, mark), value), field)
}

// appendSettlements appends the result of each settlement.
func (c *call) appendSettlements(b []byte) []byte {
	if len(c.settlements) == 0 {
		return b
	}
	b, field, value := beginField(b, "settlements")
	b, list := begin(b, valueList)
	for i, s := range c.settlements {
		var item, object int
		b, item = begin(b, listValues)
		b, object = begin(b, valueStruct)
		b = appendText(b, "rule", c.plan.Outcomes[c.plan.Settlements[i].Descriptor].Rule.Name())
		b = appendText(b, "result", s.result)
		b = end(end(b, object), item)
	}
	return end(end(end(b, list), value), field)
}
