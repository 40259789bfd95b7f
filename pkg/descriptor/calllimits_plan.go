package descriptor

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// planCallLimits plans a call to a domain of a limitador file. The outcome of the first descriptor has the takes of
// all limits that apply; the other descriptors are beside it.
func (r *Rules) planCallLimits(d *Domain, call *Call, plan *Plan) {
	p := limitPlanner{plan: plan, call: call, in: input(call), out: Outcome{Kind: Unmatched, Mode: call.Use.mode()}}
	plan.matched = d.limits.candidates(call, plan.matched[:0])
	for _, rule := range plan.matched {
		p.limit(rule)
	}
	p.finish()
	for i := range call.Descriptors {
		out := Outcome{Kind: Beside}
		if i == 0 {
			out = p.out
		}
		plan.Outcomes = append(plan.Outcomes, out)
	}
}

// input returns the input of expressions for a call.
func input(call *Call) *celInput {
	in := &celInput{Descriptors: make([]map[string]string, len(call.Descriptors))}
	for i := range call.Descriptors {
		entries := call.Descriptors[i].Entries
		in.Descriptors[i] = make(map[string]string, len(entries))
		for _, e := range entries {
			in.Descriptors[i][e.Key] = e.Value
		}
	}
	return in
}

// mode returns the mode of takes.
func (u Use) mode() limiter.Mode {
	if u == UseReport {
		return limiter.Charge
	}
	return limiter.Consume
}

// limitPlanner plans the limits that apply to one call.
type limitPlanner struct {
	plan *Plan
	call *Call
	in   *celInput
	out  Outcome
}

// limit plans one limit, if it applies.
func (p *limitPlanner) limit(rule *Rule) {
	w := rule.when
	in := p.in.For(w.spec.Name, w.spec.ID)
	ok, err := w.applies(in)
	if err == nil && !ok {
		return
	}
	var entity []byte
	if err == nil {
		entity, err = w.entity(in, p.plan.text[:0])
		p.plan.text = entity
	}
	switch {
	case missing(err):
		return
	case err != nil:
		p.deny(rule, ConditionFailed)
	case w.blocked && p.needsRoom():
		p.deny(rule, limiter.ReasonExceedsCapacity.String())
	case w.blocked:
		p.matched(rule)
	default:
		p.take(rule, limiter.ShortName(string(entity)))
	}
}

// needsRoom reports whether the call is denied where nothing is left.
func (p *limitPlanner) needsRoom() bool {
	return p.call.Use == UseTake || p.call.Use == UseCheck || p.call.Use == UseReserve && p.call.Hits > 0
}

func (p *limitPlanner) matched(rule *Rule) {
	if p.out.Kind == Unmatched {
		p.out.Kind, p.out.Rule = Takes, rule
	}
}

// deny makes a limit deny the call, unless the call is a charge. A charge is lost for this limit.
func (p *limitPlanner) deny(rule *Rule, why string) {
	p.matched(rule)
	p.out.Why, p.out.Rule = why, rule
	if p.out.Mode == limiter.Consume {
		p.out.Kind = Denied
	}
}

// take adds the take of a limit.
func (p *limitPlanner) take(rule *Rule, entity string) {
	p.matched(rule)
	plan, t := p.plan, &rule.takes[0]
	q := demand{mode: p.out.Mode, hits: p.hits(), peek: p.call.Use == UseCheck || p.call.Use == UseReserve && p.call.Hits == 0}
	amount, _ := q.amount(&t.consume[0])
	first := len(plan.consume)
	plan.consume = append(plan.consume, limiter.Consumption{Limit: t.consume[0].Limit, Amount: amount})
	if p.call.Use == UseReserve && amount > 0 {
		plan.Reserves = append(plan.Reserves, Reserve{Take: len(plan.Request.Takes), Hits: q.hits})
	}
	plan.Request.Takes = append(plan.Request.Takes, limiter.Take{
		Entity: entity, Resource: rule.domain.name, Limits: t.own.limits, LimitsOf: t.own.of, LimitsBy: t.own.by, Consume: plan.consume[first:len(plan.consume):len(plan.consume)], Mode: q.mode,
	})
	plan.Applied = append(plan.Applied, rule)
	p.out.Count++
}

// hits returns the hits of the call.
func (p *limitPlanner) hits() uint64 {
	if p.call.Use == UseReserve {
		return p.call.Hits
	}
	return max(1, p.call.Hits)
}

// finish completes the outcome.
func (p *limitPlanner) finish() {
	plan := p.plan
	plan.Charges = p.out.Mode == limiter.Charge && p.out.Count > 0
	p.out.Peek = p.call.Use == UseReserve && p.call.Hits == 0 && p.out.Count > 0
	plan.Answers = p.out.Peek
	if p.out.Kind != Denied {
		return
	}
	plan.Request.Takes, plan.Applied, plan.Reserves = plan.Request.Takes[:0], plan.Applied[:0], plan.Reserves[:0]
	p.out.Count, plan.Answers, p.out.Peek = 0, false, false
}
