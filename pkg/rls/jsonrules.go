package rls

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// JSONOptions are the effects that calls over [Service.JSONHandler] may have beside takes,
// reservations and settlements. Over gRPC all effects are allowed.
type JSONOptions struct {
	Refunds bool // refund tokens, by is_negative_hits
	Charges bool // charge tokens, into debt, by rules with overdraw
}

var (
	errRefund = &invalidError{reason: "forbidden", text: "refunds are not allowed over /json: the configuration allows them with server.http.refunds: true"}
	errCharge = &invalidError{reason: "forbidden", text: "charges are not allowed over /json: the configuration allows them with server.http.charges: true"}
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
