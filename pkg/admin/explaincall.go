package admin

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// CallExplanation explains a call. Its descriptors are admitted together or not at all.
type CallExplanation struct {
	Domain        string                  `json:"domain"`
	Namespace     string                  `json:"namespace,omitempty"`
	Admitted      bool                    `json:"admitted"` // by the present state
	Why           string                  `json:"why,omitempty"`
	RetryAfter    string                  `json:"retry_after,omitempty"`    // as Explanation.RetryAfter
	OnUnavailable string                  `json:"on_unavailable,omitempty"` // as Explanation.OnUnavailable
	Late          bool                    `json:"late,omitempty"`           // as Explanation.Late
	Fallback      string                  `json:"fallback,omitempty"`       // as Explanation.Fallback
	Descriptors   []DescriptorExplanation `json:"descriptors"`
}

// DescriptorExplanation explains a descriptor of a call. Its limits are compared with everything
// that the call takes of them. Its member admitted is false for a descriptor that denies the call.
type DescriptorExplanation struct {
	Descriptor string `json:"descriptor"` // its entries, key=value
	Quota      bool   `json:"quota,omitempty"`
	Explanation
}

// ExplainCall explains a call of several descriptors.
func (e *Explainer) ExplainCall(ctx context.Context, call *descriptor.Call) (*CallExplanation, error) {
	cfg := e.InForce()
	call.Now, call.AllQuota, call.Estimates = e.Now(), cfg.Files.Quota, e.Estimates
	var plan descriptor.Plan
	cfg.Rules.Plan(call, &plan)
	plan.Request.Snapshot = cfg.Snapshot
	x := &CallExplanation{Domain: printable(call.Domain)}
	if plan.Domain != nil {
		x.Namespace = plan.Domain.Namespace()
	}
	var b *balances
	if len(plan.Request.Takes) > 0 {
		var err error
		if b, err = e.readBalances(ctx, &plan.Request, func(take int) bool { return answersOf(&plan, take) }, plan.Answers || plan.Quota); err != nil {
			return nil, err
		}
		x.Late, x.OnUnavailable = b.decision.Late, b.policy.String()
		if b.decision.Policy != limiter.Unset {
			x.Fallback = b.decision.Policy.String()
		}
	}
	for i := range call.Descriptors {
		one, err := e.explainOne(ctx, cfg, call, &plan, b, i)
		if err != nil {
			return nil, err
		}
		x.Descriptors = append(x.Descriptors, *one)
	}
	x.conclude(b, &plan)
	if !x.Admitted && cfg.admitsAll(plan.Domain) {
		x.Admitted, x.Why, x.RetryAfter = true, shadowWhy, ""
	}
	return x, nil
}

// answersOf reports whether a take denies below zero only.
func answersOf(plan *descriptor.Plan, take int) bool {
	for _, o := range plan.Outcomes {
		if o.Kind == descriptor.Takes && o.First <= take && take < o.First+o.Count {
			return o.Answers || o.Peek
		}
	}
	return false
}

// explainOne explains the descriptor at an index of a call.
func (e *Explainer) explainOne(ctx context.Context, cfg *InForce, call *descriptor.Call, plan *descriptor.Plan, b *balances, index int) (*DescriptorExplanation, error) {
	desc, outcome := &call.Descriptors[index], &plan.Outcomes[index]
	found := cfg.Rules.Explain(call.Domain, desc)
	if plan.Domain != nil && plan.Domain.OfLimits() { // its limits look at the whole call
		found.Rule, found.Plans = outcome.Rule, nil
	}
	x := &DescriptorExplanation{Descriptor: entriesText(desc.Entries), Quota: outcome.Quota, Explanation: *describe(cfg, call.Domain, &found, outcome)}
	for _, u := range plan.Unlisted {
		if u.Take >= outcome.First && u.Take < outcome.First+outcome.Count {
			x.Unlisted = append(x.Unlisted, printable(u.Value))
		}
	}
	if outcome.Kind == descriptor.Takes && b != nil {
		plans := found.Plans
		if len(plans) != outcome.Count { // alone, the descriptor has other takes
			plans = nil
		}
		x.addLimits(b, outcome.First, outcome.First+outcome.Count, plans)
		alone := plan.Request
		alone.Takes = alone.Takes[outcome.First : outcome.First+outcome.Count]
		if err := e.tried(ctx, &alone, b, &x.Explanation); err != nil {
			return nil, err
		}
	}
	var shadows []descriptor.Shadow
	for _, s := range plan.Shadows {
		if s.Descriptor == index {
			shadows = append(shadows, s)
		}
	}
	return x, e.shadows(ctx, cfg, shadows, &x.Explanation)
}

// conclude sets the decision about the call from those about its descriptors.
func (x *CallExplanation) conclude(b *balances, plan *descriptor.Plan) {
	var over []string
	quotas, overQuotas := 0, 0
	wait := ""
	for i := range x.Descriptors {
		d := &x.Descriptors[i]
		x.Late, x.Fallback = x.Late || d.Late, cmp.Or(x.Fallback, d.Fallback)
		if d.Quota {
			quotas++
		}
		if d.Admitted {
			continue
		}
		if d.Quota {
			overQuotas++
		}
		over = append(over, strconv.Itoa(i+1))
		wait = later(wait, cmp.Or(d.RetryAfter, never)) // a rule that denies always will
	}
	x.Admitted = len(over) == overQuotas && (quotas == 0 || overQuotas < quotas)
	if !x.Admitted {
		x.Why, x.RetryAfter = "descriptor "+strings.Join(over, ", "), wait
	}
	if b == nil {
		return
	}
	if why := b.refusal(); why != "" && consumes(plan) {
		x.Admitted, x.Why, x.RetryAfter = false, why, ""
	}
}

// consumes reports whether a take of the plan can deny.
func consumes(plan *descriptor.Plan) bool {
	for i := range plan.Request.Takes {
		if plan.Request.Takes[i].Mode == limiter.Consume {
			return true
		}
	}
	return false
}

// entriesText writes entries for people.
func entriesText(entries []descriptor.Entry) string {
	parts := make([]string, len(entries))
	for i, e := range entries {
		parts[i] = printable(e.Key + "=" + e.Value)
	}
	return strings.Join(parts, ", ")
}
