package rls

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// forbidden returns the problem of a planned call with an effect that its transport does not allow,
// nil if there is none.
func (c *call) forbidden() *invalidError {
	if !c.json {
		return nil
	}
	allowed := c.options.JSON
	if !allowed.Refunds && slices.ContainsFunc(c.in.Descriptors, func(d descriptor.Descriptor) bool { return d.Refund }) {
		return errRefund
	}
	charge := charges(&c.plan.Request) || slices.ContainsFunc(c.plan.Shadows, func(s descriptor.Shadow) bool { return charges(&s.Request) })
	if !allowed.Charges && charge {
		return errCharge
	}
	return nil
}

func charges(r *limiter.Request) bool {
	return slices.ContainsFunc(r.Takes, func(t limiter.Take) bool { return t.Mode == limiter.Charge })
}
