package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lane"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// unanswered ends a call whose context is done: late, where its deadline has passed, DynamoDB
// answers, and there is a clock or no need of one; else with an error.
func (c *call) unanswered(ctx context.Context, ops []limiter.Op) (bool, error) {
	e := c.engine
	_, open := e.guard.Outages()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || open || e.lanes.Silent() {
		return false, c.abandon(ctx.Err()) //nolint:contextcheck // a lane works for as long as the lanes do
	}
	if err := e.lanes.NeedClock(c.requests); err != nil { //nolint:contextcheck // a lane works for as long as the lanes do
		return false, c.abandon(err) //nolint:contextcheck // the same
	}
	defer c.byCaller(ops)
	return c.decideLate(ops) //nolint:contextcheck // a lane works for as long as the lanes do
}

// decideLate decides a call by the estimates of its lanes. Requests that have an end
// already keep it.
func (c *call) decideLate(ops []limiter.Op) (bool, error) {
	c.engine.lanes.DecideLate(c.requests, c.judge)
	admitted, err := c.decide(ops)
	for i := range ops {
		ops[i].Late = err == nil
	}
	return admitted, err
}

// judge takes in the estimates of a late call's lanes for its requests, nil for those that
// have an end. It reports whether the call is admitted.
func (c *call) judge(told []*plan.Request) bool {
	at := make(map[*lane.Request]*plan.Request, len(told))
	for i, r := range c.requests {
		at[r] = told[i]
	}
	admitted := true
	for _, b := range c.branches {
		for i := range b.asked {
			a := &b.asked[i]
			if own := at[a.request]; own != nil {
				a.late, a.part.Request = true, own
			} else {
				admitted = admitted && a.request.Err == nil
			}
		}
	}
	c.harvest()
	for _, b := range c.branches {
		admitted = admitted && b.Met()
	}
	return admitted
}

// abandon ends a call without a decision. Tokens that were taken are given back, unless the
// caller is admitted. A write that waits is not sent. One that is under way may or may not
// be applied: the lane gives back the tokens that it takes.
func (c *call) abandon(cause error) error {
	kind := limiter.ErrUnavailable
	for i, end := range c.engine.lanes.Abandon(c.requests) {
		r := c.requests[i]
		switch end {
		case lane.Unsent:
		case lane.Unknown:
			kind = limiter.ErrUncertain
		case lane.Decided:
			if !r.Keep {
				c.engine.lanes.GiveBack(r)
			}
			if errors.Is(r.Err, limiter.ErrUncertain) || r.Err == nil && r.Books() {
				kind = limiter.ErrUncertain
			}
		}
	}
	return fmt.Errorf("%w: %w", kind, cause)
}
