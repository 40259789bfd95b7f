package rls

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// judgeRoom denies a check over HTTP, which asks for more than one hit, where a limit has too little.
func judgeRoom(c *call) {
	if c.in.Use != descriptor.UseCheck || !c.json || c.verdict.denied {
		return
	}
	amount := int64(min(c.in.Hits, tokenbucket.MaxAmount/limiter.Milli)) * limiter.Milli // #nosec G115 -- it is bounded
	for i := range c.decision.Statuses {
		if st := &c.decision.Statuses[i]; st.Available < amount {
			exceed(st, amount)
			c.verdict.denied, c.verdict.reason = true, limiter.ReasonExhausted.String()
			c.decision.Reason, c.decision.RetryAfter = limiter.ReasonExhausted, max(c.decision.RetryAfter, st.RetryAfter)
		}
	}
}

// misplaced returns the problem of a call of Kuadrant's service to a domain of other rules.
func misplaced(c *call) *invalidError {
	if c.method == nil || c.plan.Domain == nil || c.plan.Domain.OfLimits() {
		return nil
	}
	return &invalidError{reason: "no_limits", text: fmt.Sprintf("domain %s has rules, and %s is for the limits of a limitador file: call %s", shown(c.in.Domain), c.method.name, rlsv3.RateLimitService_ShouldRateLimit_FullMethodName)}
}

// commit settles the reservation of a Commit. Without a reservation that can be settled, the plan reports the amount.
func commit(ctx context.Context, now time.Time, s *Service, c *call) {
	if c.method == nil || !c.method.commits {
		return
	}
	reports := c.in.Hits > 0
	switch {
	case c.commits == "" || strings.HasPrefix(c.commits, idOfNothing):
	case strings.HasPrefix(c.commits, idOfTaken):
		reports = false
	default:
		result, adjusted := s.settleOne(context.WithoutCancel(ctx), now, c, c.commits, nil)
		correct(c, adjusted)
		s.metrics.commits.WithLabelValues(result).Inc()
		switch result {
		case settledNow, bookingKept, bookingUncertain:
			c.released, reports = true, false
		case settledBefore, bookingLost, settledFailed: // what was reserved stays taken
			reports = false
		}
	}
	if !reports {
		c.plan.Request.Takes, c.plan.Applied, c.plan.Charges = c.plan.Request.Takes[:0], c.plan.Applied[:0], false
		for i := range c.plan.Outcomes {
			c.plan.Outcomes[i] = descriptor.Outcome{Kind: descriptor.Beside}
		}
	}
}

// correct notes the corrections of a commit, by the limits that apply to the call.
func correct(c *call, adjusted []limiter.Consumption) {
	for _, a := range adjusted {
		i := slices.IndexFunc(c.plan.Applied, func(r *descriptor.Rule) bool { return slices.Contains(r.Limits(), a.Limit) })
		if i >= 0 {
			c.corrected = append(c.corrected, correction{c.plan.Applied[i], a})
		}
	}
}

// encodeKuadrant writes the answer of Reserve and Commit to c.out.
func encodeKuadrant(c *call) {
	switch {
	case c.method == nil:
	case c.method.commits:
		c.out = appendUint(c.out[:0], commitReleased, protowire.EncodeBool(c.released))
	case c.method.does == descriptor.UseReserve:
		c.out = appendUint(c.out[:0], reserveCode, overallCode(c.verdict.denied))
		if !c.verdict.denied { // of nothing too: a Commit of an id that holds nothing is a Report
			c.out = appendString(c.out, reserveID, c.reserved.idForCommit())
		}
	}
}

// Ids that a Commit cannot settle begin so.
const (
	idOfNothing = "none." // nothing was taken, and a Commit is a Report
	idOfTaken   = "kept." // what was taken stays taken, and a Commit has no effect
)

// idForCommit returns the id of a Reserve that is admitted.
func (r *reserved) idForCommit() string {
	switch {
	case r.id != "":
		return r.id
	case r.any:
		return idOfTaken + rand.Text()
	default:
		return idOfNothing + rand.Text()
	}
}
