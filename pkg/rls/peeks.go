package rls

import (
	"cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// final reports whether the last part denied the call for another reason than too few tokens.
func final(c *call) bool {
	return c.verdict.blanket || c.decision.MissingLimit != "" || c.decision.Reason == limiter.ReasonDisabled
}

// judgePeeks makes the statuses of peeks those of such a file: a peek is over its limit in debt only.
func judgePeeks(c *call) {
	for i := range c.plan.Outcomes {
		if o := &c.plan.Outcomes[i]; o.Peek {
			all := c.statuses(o)
			for k := range all {
				need(&all[k], 0)
			}
		}
	}
}

// need sets whether a status has too little for an amount, 0 = any balance that is no debt, and how long that lasts.
func need(s *limiter.LimitStatus, amount int64) {
	s.Exceeded, s.Never, s.RetryAfter = false, false, 0
	if s.Available < amount {
		exceed(s, cmp.Or(amount, limiter.Milli))
	}
}

// ofLimits reports whether a plan is of a domain of a limitador file.
func ofLimits(p *descriptor.Plan) bool { return p.Domain != nil && p.Domain.OfLimits() }

// ofFile reports whether a plan is of a domain of an envoyproxy/ratelimit file.
func ofFile(p *descriptor.Plan) bool { return p.Domain != nil && p.Domain.OfFile() }
