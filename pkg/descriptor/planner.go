package descriptor

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// demand is the demand of a descriptor on the limits of a rule.
type demand struct {
	mode limiter.Mode
	hits uint64
	peek bool // at every limit of the rule

	unknown bool // the call has no number of hits
	settles bool // with a refund of the same call: amounts by hits, and no constants
	answers bool // a charge that is over its limit when the balance is below zero after it
}

// demandOf returns the demand of the descriptor at the index.
func demandOf(r *Rule, call *Call, index int) demand {
	desc := &call.Descriptors[index]
	q := demand{hits: call.HitsOf(index), unknown: !desc.HitsSet && call.Hits == 0}
	switch {
	case desc.Refund:
		q.mode = limiter.Refund
	case desc.HitsSet && r.leaf == nil && call.refunds(desc):
		q.mode, q.settles = limiter.Charge, true
	case desc.HitsSet && desc.Hits == 0:
		q.peek = true
	case desc.HitsSet && r.overdraw:
		q.mode = limiter.Charge
	}
	return q
}

// HitsOf returns the hits of a descriptor, by its index: its own number, or that of the call.
func (c *Call) HitsOf(index int) uint64 {
	if desc := &c.Descriptors[index]; desc.HitsSet {
		return desc.Hits
	}
	return max(1, c.Hits)
}

// amount returns how much of a limit is taken. It returns false when the limit is left alone, as a
// refund or a charge is 0.
func (q demand) amount(c *ConsumeSpec) (amount int64, ok bool) {
	if q.peek {
		return 0, true
	}
	if hi, lo := bits.Mul64(uint64(c.PerHit), q.hits); hi > 0 || lo > tokenbucket.MaxAmount { // #nosec G115 -- Compile refuses negative amounts
		amount = tokenbucket.MaxAmount
	} else {
		amount = int64(lo)
	}
	if q.mode != limiter.Refund && !q.settles {
		amount = min(amount+c.Constant, tokenbucket.MaxAmount)
	}
	return amount, amount > 0 || q.mode == limiter.Consume
}

// refunds reports whether the call refunds a descriptor of the same entries.
func (c *Call) refunds(desc *Descriptor) bool {
	for i := range c.Descriptors {
		if d := &c.Descriptors[i]; d.Refund && slices.Equal(d.Entries, desc.Entries) {
			return true
		}
	}
	return false
}

// Plan plans the takes of a call, and puts them into plan. It cannot fail. A descriptor that can
// never be admitted has a [Denied] outcome. The caller must then not take the planned amounts of
// the other descriptors. Charges and refunds are never denied: parts of them without a limit are
// left out, and [Outcome].Why says so.
//
// The takes are in the order of the descriptors. The limiter nets the refunds and charges of one
// request, and decides its takes after that.
//
// Rules may have different policies for an unavailable store. The strictest applies: deny, then
// local, then the stored or configured policy (for a rule without one), then allow.
func (r *Rules) Plan(call *Call, plan *Plan) {
	d, _ := r.Domain(call.Domain)
	plan.reset(d)
	switch {
	case d != nil && d.tree != nil:
		r.planTree(d, call, plan)
		return
	case d != nil && d.limits != nil:
		r.planCallLimits(d, call, plan)
		return
	}
	exempt := false
	for i := range call.Descriptors {
		if d == nil {
			plan.Outcomes = append(plan.Outcomes, Outcome{Kind: Unmatched})
			continue
		}
		p := planner{rules: r, plan: plan, call: call, index: i}
		out := p.descriptor(d)
		exempt = exempt || out.Kind == Exempt
		plan.Outcomes = append(plan.Outcomes, out)
	}
	if exempt {
		plan.exempt()
	}
}

// exempt leaves of the plan of an exempt call its settlements only.
func (p *Plan) exempt() {
	p.Request.Takes, p.Shadows, p.Reserves, p.Unlisted = p.Request.Takes[:0], p.Shadows[:0], p.Reserves[:0], p.Unlisted[:0]
	p.Charges, p.Answers, p.Quota = false, false, false
	for i := range p.Outcomes {
		if o := &p.Outcomes[i]; o.Kind != Settles {
			*o = Outcome{Kind: Exempt, Rule: o.Rule}
		}
	}
}

// reset empties the plan and keeps its memory.
func (p *Plan) reset(d *Domain) {
	p.Domain = d
	p.Request = limiter.Request{Takes: p.Request.Takes[:0]}
	if d != nil {
		p.Request.Namespace = d.namespace
	}
	p.Outcomes = p.Outcomes[:0]
	p.Shadows = p.Shadows[:0]
	p.Charges, p.Answers, p.Quota = false, false, false
	p.Reserves, p.Settlements = p.Reserves[:0], p.Settlements[:0]
	p.Unlisted, p.Applied = p.Unlisted[:0], p.Applied[:0]
	p.consume = p.consume[:0]
	p.parents = p.parents[:0]
}

// planner plans one descriptor of a call.
type planner struct {
	rules *Rules
	plan  *Plan
	call  *Call
	index int // of the descriptor

	charged bool // the descriptor is a charge of a tree
}

func (p *planner) descriptor(d *Domain) Outcome {
	var buf [inlineKeys]keyRef
	v := d.view(p.call.Descriptors[p.index].Entries, buf[:0])
	rule := d.first(&v)
	p.plan.matched = d.shadowsBefore(rule, &v, p.plan.matched[:0])
	for _, shadow := range p.plan.matched {
		p.shadow(shadow, &v)
	}
	switch {
	case rule == nil:
		return Outcome{Kind: Unmatched, Deny: d.denyUnknown}
	case rule.unlimited:
		return Outcome{Kind: Unlimited, Rule: rule}
	case rule.exempt:
		return Outcome{Kind: Exempt, Rule: rule}
	case rule.deny != nil:
		return Outcome{Kind: Denied, Rule: rule, Why: DeniedByRule}
	case rule.settle:
		p.settle(rule)
		return Outcome{Kind: Settles, Rule: rule}
	}
	return p.enforce(rule, &v)
}

// enforce adds the takes of the matching rule to the call's request.
func (p *planner) enforce(rule *Rule, v *view) Outcome {
	request := &p.plan.Request
	first := len(request.Takes)
	q := p.demand(rule)
	takes, why := p.takes(rule, v, q, request.Takes)
	request.Takes = takes
	p.plan.Reserves = append(p.plan.Reserves, p.plan.reserved...)
	if why != "" && (q.mode == limiter.Consume || q.answers) {
		return Outcome{Kind: Denied, Rule: rule, First: first, Why: why}
	}
	out := Outcome{Kind: Takes, Rule: rule, First: first, Count: len(takes) - first, Mode: q.mode, Why: why, Settled: q.settles, Answers: q.answers, Peek: q.peek && rule.leaf != nil}
	if out.Count == 0 {
		return out
	}
	if q.mode == limiter.Charge {
		p.plan.Charges = true
		p.plan.Answers = p.plan.Answers || q.answers
	}
	if first == 0 {
		request.OnUnavailable, request.LocalShare = rule.policy, rule.share
	} else {
		request.OnUnavailable, request.LocalShare = stricter(request.OnUnavailable, request.LocalShare, rule.policy, rule.share)
	}
	return out
}

// demand returns the demand of the current descriptor.
func (p *planner) demand(rule *Rule) demand {
	q := demandOf(rule, p.call, p.index)
	if p.charged {
		q.mode, q.answers = limiter.Charge, true
	}
	return q
}

// shadow adds the takes of a shadow rule.
func (p *planner) shadow(rule *Rule, v *view) {
	if len(rule.takes) == 0 && rule.deny == nil {
		return
	}
	shadows := p.plan.Shadows
	if len(shadows) < cap(shadows) {
		shadows = shadows[:len(shadows)+1] // with the memory of an earlier plan
	} else {
		shadows = append(shadows, Shadow{})
	}
	s := &shadows[len(shadows)-1]
	q := p.demand(rule)
	takes, why := p.takes(rule, v, q, s.Request.Takes[:0])
	switch {
	case rule.deny != nil:
		why = DeniedByRule
	case q.mode != limiter.Consume && !q.answers:
		why = "" // a charge or refund is not denied
	}
	*s = Shadow{Rule: rule, Descriptor: p.index, Why: why, Answers: q.answers, Peek: q.peek && rule.leaf != nil, Reserves: append(s.Reserves[:0], p.plan.reserved...), Request: limiter.Request{
		Namespace: rule.domain.namespace, Takes: takes, OnUnavailable: rule.policy, LocalShare: rule.share,
	}}
	if len(takes) == 0 && why == "" { // a refund of nothing
		shadows = shadows[:len(shadows)-1]
	}
	p.plan.Shadows = shadows
}

// takes appends the takes of the rule to takes. why is the reason for which the descriptor can
// never be admitted; then nothing is appended. Charges and refunds are always booked: for these why
// is about a part of them, and the rest is appended.
func (p *planner) takes(rule *Rule, v *view, q demand, takes []limiter.Take) (all []limiter.Take, why string) {
	plan := p.plan
	if rule.leaf != nil {
		return p.leafTakes(rule, q, takes)
	}
	plan.values = rule.capture(v, plan.values[:0])
	plan.reserved = plan.reserved[:0]
	first := len(takes)
	for i := range rule.takes {
		t := &rule.takes[i]
		parts, n, problem := p.parts(rule, t, q)
		if problem != "" {
			why = problem
			if q.mode == limiter.Consume {
				return takes[:first], why
			}
			continue
		}
		entity, resource, parents := plan.render(&t.entity), p.resource(rule, t, len(takes)), plan.renderParents(t)
		for _, part := range parts[:n] {
			consume := p.consumption(t, q, part, entity, resource)
			if len(consume) == 0 {
				continue
			}
			if t.reserve && q.mode == limiter.Consume && !q.peek {
				plan.reserved = append(plan.reserved, Reserve{Take: len(takes), Hits: q.standsFor(t, consume)})
			}
			takes = append(takes, limiter.Take{
				Entity: entity, Resource: resource, Parents: parents, Limits: part.limits, LimitsOf: part.of, LimitsBy: part.by, Given: part.given,
				Label: rule.label, Shadow: rule.shadow, Consume: consume, Mode: q.mode, Lease: rule.lease,
			})
		}
	}
	return takes, why
}

// parts returns the parts of a take, under the limits that it names.
func (p *planner) parts(rule *Rule, t *take, q demand) (parts [2]share, n int, why string) {
	own := t.own
	if len(t.limitSet.parts) > 0 {
		var ok bool
		own, ok = p.rules.limitSets[p.plan.render(&t.limitSet)]
		if !ok {
			return parts, 0, limiter.ReasonNotConfigured.String()
		}
	}
	return p.split(rule, t, q, own)
}

// share is a part of a take: its limits, and the amounts that it has.
type share struct {
	limitSet
	only   int // index in take.consume; -1 = all
	except int // index in take.consume; -1 = none
}

// split returns the parts of a take. There are two when a descriptor has a limit of its own and the
// limiter resolves the others.
//
// A limit of 0 requests admits nothing, so there is nothing to refund or to charge either.
func (p *planner) split(rule *Rule, t *take, q demand, limits limitSet) (parts [2]share, n int, why string) {
	own := p.call.Descriptors[p.index].Limit
	if own == nil || t.replaced < 0 {
		parts[0] = share{limitSet: limits, only: -1, except: -1}
		return parts, 1, ""
	}
	rest := share{limitSet: limits, only: -1, except: t.replaced}
	if own.Requests == 0 {
		if q.mode == limiter.Consume || q.answers {
			return parts, 0, limiter.ReasonExceedsCapacity.String()
		}
		parts[0] = rest
		return parts, 1, ""
	}
	replaced := limitSet{limits: p.rules.replace(limits.limits, rule, own), by: limits.by, given: rule.override}
	if replaced.limits == nil {
		return parts, 0, limiter.ReasonNotConfigured.String()
	}
	if limits.limits != nil || len(t.consume) == 1 {
		parts[0] = share{limitSet: replaced, only: -1, except: -1}
		return parts, 1, ""
	}
	parts[0] = share{limitSet: replaced, only: t.replaced, except: -1}
	parts[1] = rest
	return parts, 2, ""
}

// settle adds the settlement of a descriptor.
func (p *planner) settle(rule *Rule) {
	desc, plan := &p.call.Descriptors[p.index], p.plan
	s := Settlement{Descriptor: p.index}
	if i := slices.IndexFunc(desc.Entries, func(e Entry) bool { return e.Key == KeyReservation }); i >= 0 {
		s.ID = desc.Entries[i].Value
	}
	switch {
	case desc.Refund:
		s.Why = IsRefund
	case !desc.HitsSet && len(rule.settles) > 0:
		s.Why = NoNumber
	}
	first := len(plan.consume)
	q := demand{mode: limiter.Charge, hits: desc.Hits, settles: true}
	for i := range rule.settles {
		amount, _ := q.amount(&rule.settles[i])
		plan.consume = append(plan.consume, limiter.Consumption{Limit: rule.settles[i].Limit, Amount: amount})
	}
	s.Used = plan.consume[first:len(plan.consume):len(plan.consume)]
	plan.Settlements = append(plan.Settlements, s)
}

// standsFor returns the hits that the amounts of a reservation stand for. If the call has a number,
// these are the hits of the demand. Otherwise they are the fewest hits that the estimate of one of
// the limits has room for. So a refund of these hits never exceeds the amounts taken.
func (q demand) standsFor(t *take, amounts []limiter.Consumption) uint64 {
	if !q.unknown {
		return q.hits
	}
	hits := uint64(math.MaxUint64)
	for _, a := range amounts {
		for i := range t.consume {
			if c := &t.consume[i]; c.Limit == a.Limit && c.PerHit > 0 {
				hits = min(hits, uint64((a.Amount-c.Constant)/c.PerHit)) // #nosec G115 -- an amount is never below its constant
			}
		}
	}
	if hits == math.MaxUint64 {
		return q.hits
	}
	return hits
}

// consumption returns the amounts of a part of a take.
func (p *planner) consumption(t *take, q demand, part share, entity, resource string) []limiter.Consumption {
	plan := p.plan
	first := len(plan.consume)
	for i := range t.consume {
		c := &t.consume[i]
		if i == part.except || part.only >= 0 && i != part.only {
			continue
		}
		amount, ok := q.amount(c)
		if c.Estimate != nil && q.unknown && q.mode == limiter.Consume {
			amount = min(p.estimate(c, entity, resource)+c.Constant, tokenbucket.MaxAmount)
		}
		if ok {
			plan.consume = append(plan.consume, limiter.Consumption{Limit: c.Limit, Amount: amount})
		}
	}
	return plan.consume[first:len(plan.consume):len(plan.consume)]
}

// estimate returns how much to reserve of a limit for a descriptor without a number.
func (p *planner) estimate(c *ConsumeSpec, entity, resource string) int64 {
	if p.call.Estimates != nil {
		if used, known := p.call.Estimates.Estimate(p.plan.Request.Namespace, entity, resource, c.Limit); known {
			return min(max(used, c.Estimate.Min), c.Estimate.Max)
		}
	}
	return c.Estimate.Max
}

// render returns the text of a template for the values of the current rule.
func (p *Plan) render(t *template) string {
	var text string
	text, p.text = t.render(p.values, p.text)
	return text
}

// renderParents returns the parents that the descriptor names; nil when there are none.
func (p *Plan) renderParents(t *take) []string {
	first := len(p.parents)
	for i := range t.parents {
		if t.parents[i].present(p.values) {
			p.parents = append(p.parents, p.render(&t.parents[i]))
		}
	}
	if len(p.parents) == first {
		return nil
	}
	return p.parents[first:len(p.parents):len(p.parents)]
}

// stricter returns the stricter of two policies and its share. Of two local ones it returns the
// smaller share that is given.
func stricter(a limiter.Policy, aShare int64, b limiter.Policy, bShare int64) (limiter.Policy, int64) {
	ra, rb := strictness(a), strictness(b)
	switch {
	case ra > rb:
		return a, aShare
	case rb > ra:
		return b, bShare
	case aShare == 0 || bShare == 0:
		return a, max(aShare, bShare)
	default:
		return a, min(aShare, bShare)
	}
}

func strictness(p limiter.Policy) int {
	switch p {
	case limiter.Deny:
		return 3
	case limiter.Local:
		return 2
	case limiter.Unset:
		return 1
	case limiter.Allow:
		return 0
	default:
		return 0
	}
}

// resource returns the resource of a take of the rule. The take will have the index in the request.
func (p *planner) resource(rule *Rule, t *take, index int) string {
	value := p.plan.render(&t.resource)
	if t.listed == nil {
		return value
	}
	found := t.listed.find(value)
	if found != value && !rule.shadow {
		p.plan.Unlisted = append(p.plan.Unlisted, Unlisted{Take: index, Value: value})
	}
	return found
}

// replace returns base with the limit of a rule replaced by the one of a descriptor, whose Requests is
// above 0. It cuts a number of tokens to limiter.MaxTokens, and a period to 1 second to 366 days.
// It returns nil when the limit would be one more than a bucket can have.
func (r *Rules) replace(base *limiter.Limits, rule *Rule, l *Limit) *limiter.Limits {
	const longest = tokenbucket.MaxPeriod * time.Millisecond
	period := min(max(l.Period, time.Second), longest)
	if rest := period % time.Millisecond; rest > 0 {
		period += time.Millisecond - rest
	}
	key := overrideKey{base: base, limit: rule.override, tokens: limiter.MaxTokens, period: period, ofFile: rule.leaf != nil}
	if l.Requests < limiter.MaxTokens {
		key.tokens = int64(l.Requests)
	}
	if set, ok := r.overrides.Get(key); ok {
		return set
	}
	set := makeOverride(key)
	r.overrides.Add(key, set)
	return set
}
