package rls

import (
	"context"
	"log/slog"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// decide plans the call and reaches a verdict, all or nothing over its descriptors. A forbidden
// call gets a problem and no verdict.
func (s *Service) decide(ctx context.Context, now time.Time, c *call, st *state) {
	c.clearDecision()
	c.verdict, c.shadows, c.settlements, c.reserved, c.released = verdict{}, c.shadows[:0], c.settlements[:0], reserved{}, false
	c.corrected = c.corrected[:0]
	c.holdings = c.holdings[:0]
	c.in.Estimates, c.in.Asked, c.in.Now = s.used, st.asked, now
	c.in.NoGuess = c.json && !c.options.JSON.Charges
	c.in.AllQuota = c.options.Files.Quota
	st.rules.Plan(&c.in, &c.plan)
	c.plan.Request.Snapshot = c.options.Snapshot
	if c.problem = misplaced(c); c.problem != nil {
		return
	}
	commit(ctx, now, s, c)
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
	judgeRoom(c)
	lookAtRest(ctx, now, s, c)
	s.used.learn(c)
	if c.verdict.policy != limiter.Unset {
		s.metrics.degraded.WithLabelValues(c.verdict.policy.String()).Inc()
		s.fellBack()
		return
	}
	if c.verdict.late {
		s.metrics.lateDecision(c.verdict.denied)
		s.log.Write(ctx, now, slog.LevelDebug, string(eventLate), "rate limit call", slog.String("event", string(eventLate)))
	}
	s.shadows.decide(ctx, now, c)
	if !c.verdict.denied {
		s.reserve(ctx, now, c)
	}
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
		s.log.failed(ctx, err)
	}
	switch {
	case err != nil || c.decision.MissingLimit != "":
		c.verdict.unbooked = bookingLost
	default:
		c.verdict.unbooked = unbooked(&c.decision)
	}
	c.clearDecision() // the decision is of another request
}
