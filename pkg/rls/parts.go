package rls

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxParts is the most requests for the takes of one call. Each leaves out the quotas found over
// their limit. A call that is not decided after the last one is denied.
const maxParts = 3

// takeInParts decides a call of envoyproxy/ratelimit descriptors in which a charge answers, or a
// limit is a quota. It books charges and refunds first, even if the call is denied. Unless that
// denies the call, it takes the rest all or nothing, without the quotas that are over.
func (s *Service) takeInParts(ctx context.Context, now time.Time, c *call) {
	c.part.index = c.part.index[:0]
	if c.books {
		s.askPart(ctx, now, c, func(o *descriptor.Outcome) bool { return o.Mode != limiter.Consume })
		c.verdict.denied = false
		c.clearBooked()
		c.judge()
	}
	booked := c.verdict
	if c.concludes() || peekPart(ctx, now, s, c, &booked) {
		return
	}
	for range maxParts {
		booked.late = booked.late || c.verdict.late
		c.verdict = verdict{}
		if !s.askPart(ctx, now, c, func(o *descriptor.Outcome) bool { return o.Mode == limiter.Consume && !o.Peek && !c.exceeded(o) }) {
			break
		}
		if !c.verdict.denied || final(c) || c.concludes() {
			break
		}
	}
	c.verdict.policy = max(c.verdict.policy, booked.policy)
	c.verdict.late = (c.verdict.late || booked.late) && c.verdict.policy == limiter.Unset
	c.verdict.unbooked = booked.unbooked
}

// peekPart asks for the balances that the call only looks at, and reports whether they decide the call.
func peekPart(ctx context.Context, now time.Time, s *Service, c *call, booked *verdict) bool {
	if !s.askPart(ctx, now, c, func(o *descriptor.Outcome) bool { return o.Peek }) {
		return false
	}
	if !c.verdict.denied || !final(c) {
		judgePeeks(c)
		c.verdict.denied = false
		booked.policy, booked.late = max(c.verdict.policy, booked.policy), c.verdict.late || booked.late
		if !c.concludes() {
			return false
		}
	}
	c.verdict.unbooked = booked.unbooked
	return true
}

// lookAtRest finds the balances of the descriptors that a denial left unasked.
func lookAtRest(ctx context.Context, now time.Time, s *Service, c *call) {
	d, verdict := &c.decision, c.verdict
	if !verdict.denied || verdict.blanket || verdict.policy != limiter.Unset || !ofFile(&c.plan) {
		return
	}
	reason, retry := d.Reason, d.RetryAfter
	c.part.look = true
	asked := s.askPart(ctx, now, c, func(o *descriptor.Outcome) bool { return len(c.statuses(o)) == 0 })
	c.part.look = false
	d.Reason, d.RetryAfter, d.MissingLimit, c.verdict = reason, retry, "", verdict
	if !asked {
		return
	}
	for i := range d.Statuses {
		st := &d.Statuses[i]
		if !slices.Contains(c.part.index, st.Take) {
			continue
		}
		amount := int64(0) // a charge was booked
		if t := &c.plan.Request.Takes[st.Take]; t.Mode == limiter.Consume {
			amount = amountOf(t, st.Limit.Name)
		}
		need(st, amount)
	}
}

// askPart requests the takes of the outcomes for which pick returns true. It adds their statuses to
// those of the earlier parts. It reports whether there were any takes.
func (s *Service) askPart(ctx context.Context, now time.Time, c *call, pick func(*descriptor.Outcome) bool) bool {
	p, d := &c.part, &c.decision
	takes := p.request.Takes[:0]
	p.index = p.index[:0]
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		if o.Kind != descriptor.Takes || !pick(o) {
			continue
		}
		for take := o.First; take < o.First+o.Count; take++ {
			t := c.plan.Request.Takes[take]
			if p.look {
				t.Mode, t.Consume = limiter.Consume, []limiter.Consumption{{Limit: t.Consume[0].Limit}}
			}
			takes, p.index = append(takes, t), append(p.index, take)
		}
	}
	p.request = c.plan.Request
	p.request.Takes = takes
	if len(takes) == 0 {
		return false
	}
	p.others = p.others[:0]
	for i := range d.Statuses {
		if !slices.Contains(p.index, d.Statuses[i].Take) {
			p.others = append(p.others, d.Statuses[i])
		}
	}
	s.ask(ctx, now, c, &p.request)
	for i := range d.Statuses {
		d.Statuses[i].Take = p.index[d.Statuses[i].Take]
	}
	if d.MissingLimit != "" {
		d.MissingTake = p.index[d.MissingTake]
	}
	if d.Reason == limiter.ReasonDisabled {
		d.Disabled.Take = p.index[d.Disabled.Take]
	}
	d.Statuses = append(d.Statuses, p.others...)
	slices.SortStableFunc(d.Statuses, func(a, b limiter.LimitStatus) int { return cmp.Compare(a.Take, b.Take) })
	return true
}

// concludes reports whether the statuses so far deny the call, and then sets the verdict. They deny
// it if a limit that is no quota is over, or if all quotas are. RetryAfter is the longest wait of
// the limits that are no quotas. If all quotas are over, it is at least the shortest wait of a
// quota.
func (c *call) concludes() bool {
	quotas, over := 0, 0
	var others, quota wait
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		if o.Quota {
			quotas++
		}
		switch w := c.waitFor(o); {
		case !c.exceeded(o):
		case !o.Quota:
			others = others.longer(w)
		default:
			over++
			if over == 1 || w.before(quota) {
				quota = w
			}
		}
	}
	if quotas > 0 && over == quotas {
		others = others.longer(quota)
	}
	if !others.exceeded {
		return false
	}
	d := &c.decision
	d.Reason, d.RetryAfter = limiter.ReasonExhausted, others.time
	if others.never {
		d.Reason, d.RetryAfter = limiter.ReasonExceedsCapacity, 0
	}
	c.verdict.denied, c.verdict.reason = true, d.Reason.String()
	return true
}

// wait is the wait of a descriptor that is over its limit.
type wait struct {
	exceeded bool // the descriptor is over its limit
	never    bool
	time     time.Duration
}

// waitFor returns the time until the descriptor would be admitted.
func (c *call) waitFor(o *descriptor.Outcome) wait {
	if !c.exceeded(o) {
		return wait{}
	}
	s := tightest(c.statuses(o))
	if s == nil || s.Never {
		return wait{exceeded: true, never: true}
	}
	return wait{exceeded: true, time: s.RetryAfter}
}

func (w wait) before(other wait) bool {
	return !w.never && (other.never || w.time < other.time)
}

func (w wait) longer(other wait) wait {
	if !w.exceeded || other.exceeded && w.before(other) {
		return other
	}
	return w
}
