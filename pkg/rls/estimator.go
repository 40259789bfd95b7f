package rls

import (
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// estimator estimates for rules from earlier use.
type estimator struct{ used *reservation.Estimates }

// Estimate implements descriptor.Estimator.
func (e estimator) Estimate(namespace, entity, resource, limit string) (int64, bool) {
	return e.used.Estimate(reservation.Key{Namespace: namespace, Entity: entity, Resource: resource, Limit: limit})
}

// observe adds the use of a reservation to the estimates. It returns the difference between the use
// and the reserved amounts.
func (e estimator) observe(holdings []limiter.Holding, used []limiter.Consumption) (adjusted []limiter.Consumption) {
	for i := range holdings {
		h := &holdings[i]
		if h.Level > 0 || h.Bucket.Shadow() {
			continue
		}
		for _, t := range h.Taken {
			amount, known := int64(0), false
			for _, u := range used {
				if u.Limit == t.Limit {
					amount, known = amount+u.Amount, true
				}
			}
			if known {
				e.used.Observe(reservation.Key{Namespace: h.Bucket.Namespace, Entity: h.Bucket.Entity, Resource: h.Bucket.Resource, Limit: t.Limit}, amount)
				adjusted = append(adjusted, limiter.Consumption{Limit: t.Limit, Amount: amount - t.Amount})
			}
		}
	}
	return adjusted
}

// learn adds the use that refunds and charges of one call settle to the estimates.
func (e estimator) learn(c *call) {
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		if !o.Settled || o.Kind != descriptor.Takes {
			continue
		}
		for _, t := range c.plan.Request.Takes[o.First : o.First+o.Count] {
			for _, u := range t.Consume {
				e.used.Observe(reservation.Key{Namespace: c.plan.Request.Namespace, Entity: t.Entity, Resource: t.Resource, Limit: u.Limit}, u.Amount)
			}
		}
	}
}
