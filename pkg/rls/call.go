package rls

import (
	"slices"
	"sort"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// call is one call from the wire to the answer. Calls are pooled: the next call overwrites
// everything in it.
type call struct {
	request
	options Options // the options at the start of the call

	plan     descriptor.Plan
	consumes bool            // a take of the plan can be denied
	books    bool            // a take of the plan is a charge or a refund
	booked   limiter.Request // the charges and refunds of a call that can never be admitted
	part     part            // of a call that is decided in parts

	decision limiter.Decision
	verdict  verdict

	shadow  limiter.Decision
	shadows []shadowResult

	reserved    reserved
	settlements []settlement // one for each of plan.Settlements
	holdings    []limiter.Holding

	out []byte // the encoded answer
}

// maxPooled bounds the size of a request whose call is used again. The memory of a larger call is
// left to the garbage collector.
const (
	maxPooled        = 64 << 10 // bytes on the wire
	maxPooledEntries = 1000
)

// verdict is the result for the call as a whole.
type verdict struct {
	denied   bool
	reason   string         // of a denial; from a fixed set of words
	blanket  bool           // the reason is that of every take, and not of one limit
	late     bool           // the limiter decided from its last seen state, as the store is slow
	policy   limiter.Policy // Unset unless a policy decided
	unbooked string         // the result of charges and refunds that were not booked; "" = booked
}

// The results of charges and refunds.
const (
	bookingDone      = "booked"
	bookingKept      = "kept"      // booked when the store answers again
	bookingUncertain = "uncertain" // unknown outcome
	bookingLost      = "lost"
)

// shadowResult is the decision of a rule in shadow mode.
type shadowResult struct {
	rule   *descriptor.Rule
	denied bool
	limit  string // that would have denied; "" when no limit would
}

// Reasons beside those of limiter.Reason.
const (
	reasonUnmatched  = "unmatched"  // no rule matches, and the policy denies that
	reasonInvalid    = "invalid"    // the limiter refuses the request as invalid
	reasonFailed     = "failed"     // no decision could be made
	reasonOverloaded = "overloaded" // too many calls in flight
	reasonTooLarge   = "too_large"  // larger than that of any gateway
)

// modes notes the modes of the plan's takes.
func (c *call) modes() {
	c.consumes, c.books = false, false
	for i := range c.plan.Request.Takes {
		if c.plan.Request.Takes[i].Mode == limiter.Consume {
			c.consumes = true
		} else {
			c.books = true
		}
	}
}

// statuses returns the statuses of a descriptor's takes. The statuses of a decision are in the
// order of takes.
func (c *call) statuses(o *descriptor.Outcome) []limiter.LimitStatus {
	if o.Kind != descriptor.Takes {
		return nil
	}
	all := c.decision.Statuses
	from := sort.Search(len(all), func(i int) bool { return all[i].Take >= o.First })
	to := from
	for to < len(all) && all[to].Take < o.First+o.Count {
		to++
	}
	return all[from:to]
}

// outcomeOf returns the outcome of a take, nil when there is none.
func (c *call) outcomeOf(take int) *descriptor.Outcome {
	i := slices.IndexFunc(c.plan.Outcomes, func(o descriptor.Outcome) bool {
		return o.Kind == descriptor.Takes && o.First <= take && take < o.First+o.Count
	})
	if i < 0 {
		return nil
	}
	return &c.plan.Outcomes[i]
}

// unmatchedDenied reports whether no rule matches the outcome's descriptor, and the policy denies
// that.
func (c *call) unmatchedDenied(o *descriptor.Outcome) bool {
	return o.Kind == descriptor.Unmatched && (o.Deny || c.plan.Domain == nil && c.options.UnmatchedDeny)
}

// over reports whether the descriptor is one of those that denied the call. It is true also for a
// quota over its limit that would have denied alone.
func (c *call) over(o *descriptor.Outcome) bool {
	switch {
	case o.Quota && c.exceeded(o): // alone it need not deny the call
		return true
	case !c.verdict.denied:
		return false
	case o.Kind == descriptor.Denied || c.unmatchedDenied(o):
		return true
	case o.Kind != descriptor.Takes:
		return false
	case o.Mode != limiter.Consume:
		return o.Answers && c.exceeded(o)
	case c.verdict.blanket:
		return true
	case c.missing(o) || c.disabled(o):
		return true
	}
	return c.exceeded(o)
}

// exceeded reports whether a limit of the descriptor has too few tokens for it.
func (c *call) exceeded(o *descriptor.Outcome) bool {
	if o.Kind == descriptor.Denied {
		return true
	}
	s := tightest(c.statuses(o))
	return s != nil && s.Exceeded
}

// missing reports whether the descriptor takes from a limit that no level has.
func (c *call) missing(o *descriptor.Outcome) bool {
	d := &c.decision
	return d.MissingLimit != "" && o.Kind == descriptor.Takes &&
		o.First <= d.MissingTake && d.MissingTake < o.First+o.Count
}

// disabled reports whether the descriptor takes from a disabled subject.
func (c *call) disabled(o *descriptor.Outcome) bool {
	d := &c.decision
	return d.Reason == limiter.ReasonDisabled && o.Kind == descriptor.Takes && o.Mode == limiter.Consume &&
		(d.Disabled.Subject.Kind == limiter.RefSystemLimits || o.First <= d.Disabled.Take && d.Disabled.Take < o.First+o.Count)
}

// tightest returns the status that stands for all. Among exceeded ones this is the longest wait,
// where never is the longest; otherwise the fewest whole tokens. The first wins a tie. It returns
// nil when there are none.
func tightest(statuses []limiter.LimitStatus) *limiter.LimitStatus {
	var t *limiter.LimitStatus
	for i := range statuses {
		if t == nil || tighter(&statuses[i], t) {
			t = &statuses[i]
		}
	}
	return t
}

// tighter reports whether a is tighter than b, which comes before a.
func tighter(a, b *limiter.LimitStatus) bool {
	switch {
	case a.Exceeded != b.Exceeded:
		return a.Exceeded
	case !a.Exceeded:
		return wholeTokens(a.Available) < wholeTokens(b.Available)
	case a.Never != b.Never:
		return a.Never
	default:
		return a.RetryAfter > b.RetryAfter
	}
}
