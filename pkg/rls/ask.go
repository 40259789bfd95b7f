package rls

import (
	"context"
	"errors"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

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

// undecidable reaches a verdict without a decision. It denies a request that can never succeed, so
// that an odd request is no way around the limits. It answers others by policy.
func (s *Service) undecidable(ctx context.Context, c *call, err error) {
	c.clearDecision()
	s.log.failed(ctx, err)
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
