package rls

import (
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// count counts the call's descriptors and shadows.
func (m *metrics) count(st *state, c *call) {
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		if o.Kind == descriptor.Takes && len(c.plan.Applied) > 0 {
			countLimits(st, c, o)
		} else {
			c.count(o, st.of(c, o))
		}
	}
	for i, settled := range c.settlements {
		rule := c.plan.Outcomes[c.plan.Settlements[i].Descriptor].Rule
		st.series.matched[rule.Index()].settlements.add(settled.result, 1)
	}
	if c.reserved.result != "" {
		m.reservations.WithLabelValues(c.reserved.result).Inc()
	}
	m.files.count(st, c)
	m.limits.count(c)
	for _, sh := range c.shadows {
		result := resultShadowAllowed
		if sh.denied {
			result = resultShadowDenied
		}
		st.series.matched[sh.rule.Index()].result(result)
	}
}

// countLimits counts a call to the limits of a limitador file: each limit that applies, and the one for which a charge is
// lost.
func countLimits(st *state, c *call, o *descriptor.Outcome) {
	for take := o.First; take < o.First+o.Count; take++ {
		one := *o
		one.First, one.Count = take, 1
		c.count(&one, st.take(c, o, take))
	}
	if o.Why != "" {
		lost := *o
		lost.Count = 0
		c.count(&lost, st.of(c, o))
	}
}

// count counts a descriptor.
func (c *call) count(o *descriptor.Outcome, s *ruleSeries) {
	switch {
	case o.Kind == descriptor.Settles: // counted by its result
	case o.Kind == descriptor.Beside: // counted with the first descriptor
	case o.Mode != limiter.Consume:
		s.charge(o.Mode, c.booking(o))
		if c.over(o) {
			s.denied(c.denial(o))
		}
	case c.over(o):
		s.result(resultDenied)
		s.denied(c.denial(o))
	case o.Kind == descriptor.Unmatched:
		s.result(resultUnmatched)
	case o.Kind == descriptor.Unlimited || o.Kind == descriptor.Exempt:
		s.result(resultUnlimited)
	case c.verdict.denied:
		s.result(resultWithheld)
	case c.verdict.policy != limiter.Unset:
		s.result(resultFallback)
	default:
		s.result(resultAllowed)
	}
}

// utilization returns the part of a bucket's capacity that is in use, in thousandths.
func utilization(s *limiter.LimitStatus) int64 {
	capacity := s.Limit.Capacity // tokens: millitokens divided by it are thousandths
	if capacity <= 0 {
		return 0
	}
	return limiter.Milli - s.Available/capacity
}

// countTokens counts the tokens of a descriptor.
func (c *call) countTokens(st *state, o *descriptor.Outcome) {
	for i := o.First; i < o.First+o.Count; i++ {
		t, series := &c.plan.Request.Takes[i], st.take(c, o, i)
		for _, consumed := range t.Consume {
			kind, counted := c.tokenKind(o, i, consumed.Limit)
			l := series.limit(consumed.Limit)
			if counted && l != nil && consumed.Amount > 0 {
				l.tokens[kind].Add(consumed.Amount)
			}
		}
	}
}

// countAdjusted counts the tokens by which a settlement corrects a reservation. The rule is the
// first that settles the reservation and names the limit.
func (c *call) countAdjusted(st *state, settlement int) {
	of := c.plan.Settlements[settlement].ID
	for _, adjusted := range c.settlements[settlement].adjusted {
		for _, s := range c.plan.Settlements[settlement:] {
			l := st.of(c, &c.plan.Outcomes[s.Descriptor]).limit(adjusted.Limit)
			if s.ID != of || l == nil {
				continue
			}
			l.tokens[tokensCharged].Add(max(adjusted.Amount, 0))
			l.tokens[tokensRefunded].Add(max(-adjusted.Amount, 0))
			break
		}
	}
}

// tokenKind returns the kind under which the amount of a take is counted, and whether it is
// counted.
func (c *call) tokenKind(o *descriptor.Outcome, take int, limit string) (kind int, counted bool) {
	switch {
	case o.Mode != limiter.Consume:
		kind = tokensCharged
		if o.Mode == limiter.Refund {
			kind = tokensRefunded
		}
		result := c.booking(o)
		return kind, result == bookingDone || result == bookingKept
	case !c.verdict.denied && (!o.Quota || !c.exceeded(o)):
		return tokensTaken, c.verdict.policy == limiter.Unset
	case c.decision.MissingLimit == limit && c.decision.MissingTake == take:
		return tokensDenied, true
	}
	for _, s := range c.statuses(o) {
		if s.Take == take && s.Exceeded && s.Limit.Name == limit {
			return tokensDenied, true
		}
	}
	return 0, false
}

// amountOf returns the millitokens of a limit that a take asks for.
func amountOf(t *limiter.Take, limit string) int64 {
	for i := range t.Consume {
		if t.Consume[i].Limit == limit {
			return t.Consume[i].Amount
		}
	}
	return 0
}
