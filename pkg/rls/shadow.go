package rls

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// shadows decides for rules in shadow mode and for limits that are tried. They deny nothing.
type shadows struct {
	decider  Decider
	observer observer
	log      eventLog
}

// decide decides for a call that has a verdict.
func (s *shadows) decide(ctx context.Context, now time.Time, c *call) {
	s.byRules(ctx, now, c)
	s.byTried(ctx, now, c)
}

// byRules decides the takes of rules in shadow mode. Of a denied call it decides only
// charges, which book past use. In the answer it changes only the metadata.
func (s *shadows) byRules(ctx context.Context, now time.Time, c *call) {
	for i := range c.plan.Shadows {
		sh, d := &c.plan.Shadows[i], &c.shadow
		_, ofFile := descriptor.Quote(sh.Rule) // such rules have statuses in denied calls too
		if c.verdict.denied && !sh.Answers && !ofFile {
			continue
		}
		if sh.Why != "" {
			c.shadows = append(c.shadows, shadowResult{rule: sh.Rule, descriptor: sh.Descriptor, denied: true})
			continue
		}
		if err := s.decider.Decide(ctx, now, &sh.Request, d); err != nil {
			s.log.failed(ctx, err)
			continue
		}
		if d.Policy != limiter.Unset {
			continue // not a decision about the rule
		}
		for _, r := range sh.Reserves {
			c.holdings = d.Holdings(c.holdings, &sh.Request, r.Take)
		}
		c.holdings = d.InFlight(c.holdings, &sh.Request)
		if sh.Answers {
			judge(&sh.Request, d)
		}
		r := shadowResult{rule: sh.Rule, descriptor: sh.Descriptor, denied: !d.Admitted, limit: d.MissingLimit}
		if ofFile && len(d.Statuses) > 0 {
			r.limited, r.status = true, d.Statuses[0]
			if sh.Peek {
				need(&d.Statuses[0], 0)
				r.status, r.denied = d.Statuses[0], d.Statuses[0].Exceeded
			}
		}
		if t := tightest(d.Statuses); t != nil && t.Exceeded {
			r.limit = t.Limit.Name
			s.observer.tellShadow(now, &sh.Request, t, r.limit)
		}
		c.shadows = append(c.shadows, r)
	}
}

// byTried decides an admitted call by the limits that are tried beside those in force. In the answer it
// changes only the metadata.
func (s *shadows) byTried(ctx context.Context, now time.Time, c *call) {
	if c.verdict.denied || c.verdict.policy != limiter.Unset || !c.decision.Tries() {
		return
	}
	c.plan.Request.TriedIn(&c.tried)
	d := &c.shadow
	if err := s.decider.Decide(ctx, now, &c.tried, d); err != nil {
		s.log.failed(ctx, err)
		return
	}
	if d.Policy != limiter.Unset {
		return // not a decision by the limits
	}
	for _, r := range c.plan.Reserves {
		c.holdings = d.Holdings(c.holdings, &c.tried, r.Take)
	}
	c.holdings = d.InFlight(c.holdings, &c.tried)
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		t := tightest(statusesOf(o, d.Statuses))
		if t == nil || o.Mode != limiter.Consume {
			continue
		}
		r := shadowResult{rule: o.Rule, descriptor: i, denied: t.Exceeded}
		if t.Exceeded {
			r.limit = limiter.ShadowName(t.Limit.Name)
			s.observer.tellShadow(now, &c.tried, t, r.limit)
		}
		c.shadows = append(c.shadows, r)
	}
}
