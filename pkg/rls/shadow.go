package rls

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

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
			s.log.failed(ctx, err)
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
