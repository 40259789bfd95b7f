package rls

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// decide plans the call and reaches a verdict, all or nothing over its descriptors. A forbidden
// call gets a problem and no verdict.
func (s *Service) decide(ctx context.Context, now time.Time, c *call, st *state) {
	c.clearDecision()
	c.verdict, c.shadows, c.settlements, c.reserved = verdict{}, c.shadows[:0], c.settlements[:0], reserved{}
	c.in.Estimates, c.in.Asked, c.in.Now = s.estimates(), st.asked, now
	c.in.NoGuess = c.json && !c.options.JSON.Charges
	st.rules.Plan(&c.in, &c.plan)
	c.plan.Request.Snapshot = c.options.Snapshot
	for i := range c.plan.Shadows {
		c.plan.Shadows[i].Request.Snapshot = c.options.Snapshot
	}
	c.modes()
	c.problem = c.forbidden()
	if c.problem != nil {
		return
	}
	if c.books || len(c.plan.Shadows) > 0 || len(c.plan.Settlements) > 0 {
		ctx = context.WithoutCancel(ctx) // charges and refunds are booked even if Envoy waits no longer
	}
	s.settle(ctx, now, c)
	switch {
	case c.cannotAdmit():
		s.bookOnly(ctx, now, c)
	case c.plan.Answers || c.plan.Quota:
		s.takeInParts(ctx, now, c)
	case len(c.plan.Request.Takes) > 0:
		s.take(ctx, now, c)
	}
	s.learn(c)
	if c.verdict.policy != limiter.Unset {
		s.metrics.degraded.WithLabelValues(c.verdict.policy.String()).Inc()
		s.fellBack()
		return
	}
	if c.verdict.late {
		s.metrics.lateDecision(c.verdict.denied)
		s.log.Write(ctx, now, slog.LevelDebug, string(eventLate), "rate limit call", slog.String("event", string(eventLate)))
	}
	if !c.verdict.denied {
		s.reserve(ctx, now, c)
	}
	s.decideShadows(ctx, now, c)
}

// clearDecision empties the decision, and keeps its memory.
func (c *call) clearDecision() {
	d := &c.decision
	d.Reason, d.MissingLimit, d.Statuses = limiter.ReasonNone, "", d.Statuses[:0]
}

// cannotAdmit denies the call without a request to the limiter if a descriptor can never be
// admitted.
func (c *call) cannotAdmit() bool {
	for i := range c.plan.Outcomes {
		switch o := &c.plan.Outcomes[i]; {
		case o.Kind == descriptor.Denied && !o.Quota:
			c.verdict = verdict{denied: true, reason: o.Why}
			return true
		case c.unmatchedDenied(o):
			c.verdict = verdict{denied: true, reason: reasonUnmatched}
			return true
		}
	}
	return false
}

// take requests the takes of the plan from the decider.
func (s *Service) take(ctx context.Context, now time.Time, c *call) {
	s.ask(ctx, now, c, &c.plan.Request)
	if !c.consumes { // only charges and refunds: no denial
		c.verdict.denied = false
	}
	c.clearBooked()
}

// ask requests a decision from the decider, and makes it the verdict.
func (s *Service) ask(ctx context.Context, now time.Time, c *call, req *limiter.Request) {
	d := &c.decision
	if err := s.decider.Decide(ctx, now, req, d); err != nil {
		s.undecidable(ctx, c, err)
	} else {
		c.verdict = verdict{denied: !d.Admitted, late: d.Late, policy: d.Policy, unbooked: unbooked(d)}
		if !d.Admitted {
			c.verdict.reason = d.Reason.String()
			c.verdict.blanket = d.Reason == limiter.ReasonHierarchy || d.Reason == limiter.ReasonUnavailable
		}
	}
}

// clearBooked clears Exceeded in the statuses of charges and refunds, which never deny.
func (c *call) clearBooked() {
	for i := range c.decision.Statuses {
		if st := &c.decision.Statuses[i]; c.plan.Request.Takes[st.Take].Mode != limiter.Consume {
			st.Exceeded = false // a take of the same bucket was denied
		}
	}
}

// unbooked returns the result of charges and refunds that were not booked; "" when they were.
func unbooked(d *limiter.Decision) string {
	switch {
	case d.Policy == limiter.Unset:
		return ""
	case d.Kept:
		return bookingKept
	case errors.Is(d.Unavailable, limiter.ErrUncertain):
		return bookingUncertain
	default:
		return bookingLost
	}
}

// undecidable reaches a verdict without a decision. It denies a request that can never succeed, so
// that an odd request is no way around the limits. It answers others by policy.
func (s *Service) undecidable(ctx context.Context, c *call, err error) {
	c.clearDecision()
	s.failed(ctx, err)
	if errors.Is(err, limiter.ErrInvalid) {
		c.verdict = verdict{denied: true, reason: reasonInvalid, blanket: true, unbooked: bookingLost}
		return
	}
	policy := c.plan.Request.OnUnavailable
	if policy == limiter.Unset {
		policy = c.options.OnUnavailable
	}
	c.verdict = undecided(policy, reasonFailed)
}

// failed notes that the decider returned an error.
func (s *Service) failed(ctx context.Context, err error) {
	kind := "other"
	switch {
	case errors.Is(err, limiter.ErrInvalid):
		kind = "invalid"
	case errors.Is(err, limiter.ErrClosed):
		kind = "closed"
	}
	s.metrics.errors.WithLabelValues(kind).Inc()
	s.trouble(ctx, eventUndecided, kind, slog.Any("error", err))
}

// bookOnly books the charges and refunds of a call that is denied without a decision.
func (s *Service) bookOnly(ctx context.Context, now time.Time, c *call) {
	if !c.books {
		return
	}
	takes := c.booked.Takes[:0]
	for _, t := range c.plan.Request.Takes {
		if t.Mode != limiter.Consume {
			takes = append(takes, t)
		}
	}
	c.booked = c.plan.Request
	c.booked.Takes = takes
	err := s.decider.Decide(ctx, now, &c.booked, &c.decision)
	if err != nil {
		s.failed(ctx, err)
	}
	switch {
	case err != nil || c.decision.MissingLimit != "":
		c.verdict.unbooked = bookingLost
	default:
		c.verdict.unbooked = unbooked(&c.decision)
	}
	c.clearDecision() // the decision is of another request
}

// decideShadows decides the takes of rules in shadow mode. Of a denied call it decides only
// charges, which book past use. In the answer it changes only the metadata.
func (s *Service) decideShadows(ctx context.Context, now time.Time, c *call) {
	for i := range c.plan.Shadows {
		sh, d := &c.plan.Shadows[i], &c.shadow
		if c.verdict.denied && !sh.Answers {
			continue
		}
		if sh.Why != "" {
			c.shadows = append(c.shadows, shadowResult{rule: sh.Rule, denied: true})
			continue
		}
		if err := s.decider.Decide(ctx, now, &sh.Request, d); err != nil {
			s.failed(ctx, err)
			continue
		}
		if d.Policy != limiter.Unset {
			continue // not a decision about the rule
		}
		if sh.Answers {
			judge(&sh.Request, d)
		}
		r := shadowResult{rule: sh.Rule, denied: !d.Admitted, limit: d.MissingLimit}
		if t := tightest(d.Statuses); t != nil && t.Exceeded {
			r.limit = t.Limit.Name
		}
		c.shadows = append(c.shadows, r)
	}
}
