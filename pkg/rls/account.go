package rls

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// observer is Config.Observe; nil = no call.
type observer func(now time.Time, o Observation)

// account counts the tokens of a call by rule and limit, and reports each bucket to Config.Observe.
func (report observer) account(now time.Time, st *state, c *call) {
	for i := range c.settlements {
		c.countAdjusted(st, i)
	}
	for _, by := range c.corrected {
		if l := st.series.matched[by.rule.Index()].limit(by.amount.Limit); l != nil {
			l.tokens[tokensCharged].Add(max(by.amount.Amount, 0))
			l.tokens[tokensRefunded].Add(max(-by.amount.Amount, 0))
		}
	}
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		if o.Kind != descriptor.Takes || o.Count == 0 {
			continue
		}
		c.countTokens(st, o)
		for _, status := range c.statuses(o) {
			report.accountStatus(now, c, o, st.take(c, o, status.Take), &status)
		}
		if o.Mode == limiter.Consume && c.missing(o) {
			t := &c.plan.Request.Takes[c.decision.MissingTake]
			report.tell(now, Observation{
				Namespace: c.plan.Request.Namespace, Entity: t.Entity, Resource: t.Resource, Limit: c.decision.MissingLimit,
				Amount: amountOf(t, c.decision.MissingLimit), Denied: true, Missing: true,
			})
		}
	}
}

// accountStatus notes the utilization of a bucket, and reports the amount taken from it.
func (report observer) accountStatus(now time.Time, c *call, o *descriptor.Outcome, series *ruleSeries, status *limiter.LimitStatus) {
	if l := series.limit(status.Limit.Name); l != nil {
		l.peak.note(now, utilization(status))
	}
	if o.Mode == limiter.Refund || c.verdict.denied && !status.Exceeded {
		return
	}
	report.tell(now, Observation{
		Namespace: c.plan.Request.Namespace, Entity: status.Entity, Resource: status.Resource, Limit: status.Limit.Name,
		Amount: amountOf(&c.plan.Request.Takes[status.Take], status.Limit.Name), Denied: status.Exceeded,
	})
}

// tellShadow reports a limit that would have denied.
func (report observer) tellShadow(now time.Time, req *limiter.Request, status *limiter.LimitStatus, limit string) {
	report.tell(now, Observation{
		Namespace: req.Namespace, Entity: status.Entity, Resource: status.Resource, Limit: limit,
		Amount: amountOf(&req.Takes[status.Take], status.Limit.Name), Denied: true, Shadow: true,
	})
}

func (report observer) tell(now time.Time, o Observation) {
	if report != nil {
		report(now, o)
	}
}
