package rls

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Observation is the effect of a decision on one limit of a bucket. Its names are those of the
// bucket, and may come from the request. The observer must not keep them, as they can be parts of a
// larger text.
type Observation struct {
	Namespace, Entity, Resource, Limit string

	Amount int64 // millitokens that were taken or charged; of a denial, millitokens asked for
	Denied bool  // this limit denied
}

// account counts the tokens of a call by rule and limit, and reports each bucket to Config.Observe.
func (s *Service) account(now time.Time, st *state, c *call) {
	for i := range c.settlements {
		c.countAdjusted(st, i)
	}
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		if o.Kind != descriptor.Takes || o.Count == 0 {
			continue
		}
		series := st.of(c, o)
		c.countTokens(o, series)
		for _, status := range c.statuses(o) {
			s.accountStatus(now, c, o, series, &status)
		}
		if o.Mode == limiter.Consume && c.missing(o) {
			t := &c.plan.Request.Takes[c.decision.MissingTake]
			s.report(now, Observation{
				Namespace: c.plan.Request.Namespace, Entity: t.Entity, Resource: t.Resource, Limit: c.decision.MissingLimit,
				Amount: amountOf(t, c.decision.MissingLimit), Denied: true,
			})
		}
	}
}

// accountStatus notes the utilization of a bucket, and reports the amount taken from it.
func (s *Service) accountStatus(now time.Time, c *call, o *descriptor.Outcome, series *ruleSeries, status *limiter.LimitStatus) {
	if l := series.limit(status.Limit.Name); l != nil {
		l.peak.note(now, utilization(status))
	}
	if o.Mode == limiter.Refund || c.verdict.denied && !status.Exceeded {
		return
	}
	s.report(now, Observation{
		Namespace: c.plan.Request.Namespace, Entity: status.Entity, Resource: status.Resource, Limit: status.Limit.Name,
		Amount: amountOf(&c.plan.Request.Takes[status.Take], status.Limit.Name), Denied: status.Exceeded,
	})
}

func (s *Service) report(now time.Time, o Observation) {
	if s.observer != nil {
		s.observer(now, o)
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
func (c *call) countTokens(o *descriptor.Outcome, series *ruleSeries) {
	for i := o.First; i < o.First+o.Count; i++ {
		t := &c.plan.Request.Takes[i]
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
