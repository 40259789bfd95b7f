package rls

import (
	"cmp"
	"errors"
	"slices"
	"sort"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ruling is the plan of a call and its result. Its methods tell the result for one descriptor.
type ruling struct {
	options  Options // the options at the start of the call
	plan     descriptor.Plan
	decision limiter.Decision
	verdict  verdict
}

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

// statuses returns the statuses of a descriptor's takes. The statuses of a decision are in the
// order of takes.
func (r *ruling) statuses(o *descriptor.Outcome) []limiter.LimitStatus {
	return statusesOf(o, r.decision.Statuses)
}

// statusesOf returns those of all statuses that are of a descriptor's takes.
func statusesOf(o *descriptor.Outcome, all []limiter.LimitStatus) []limiter.LimitStatus {
	if o.Kind != descriptor.Takes {
		return nil
	}
	from := sort.Search(len(all), func(i int) bool { return all[i].Take >= o.First })
	to := from
	for to < len(all) && all[to].Take < o.First+o.Count {
		to++
	}
	return all[from:to]
}

// outcomeOf returns the outcome of a take, nil when there is none.
func (r *ruling) outcomeOf(take int) *descriptor.Outcome {
	i := slices.IndexFunc(r.plan.Outcomes, func(o descriptor.Outcome) bool {
		return o.Kind == descriptor.Takes && o.First <= take && take < o.First+o.Count
	})
	if i < 0 {
		return nil
	}
	return &r.plan.Outcomes[i]
}

// unmatchedDenied reports whether no rule matches the outcome's descriptor, and the policy denies
// that.
func (r *ruling) unmatchedDenied(o *descriptor.Outcome) bool {
	return o.Kind == descriptor.Unmatched && (o.Deny || r.plan.Domain == nil && r.options.UnmatchedDeny)
}

// over reports whether the descriptor is one of those that denied the call. It is true also for a
// quota over its limit that would have denied alone.
func (r *ruling) over(o *descriptor.Outcome) bool {
	switch {
	case o.Quota && r.exceeded(o): // alone it need not deny the call
		return true
	case !r.verdict.denied:
		return false
	case o.Kind == descriptor.Denied || r.unmatchedDenied(o):
		return true
	case o.Kind != descriptor.Takes:
		return false
	case o.Mode != limiter.Consume:
		return o.Answers && r.exceeded(o)
	case r.verdict.blanket:
		return true
	case r.missing(o) || r.disabled(o):
		return true
	}
	return r.exceeded(o)
}

// exceeded reports whether a limit of the descriptor has too few tokens for it.
func (r *ruling) exceeded(o *descriptor.Outcome) bool {
	if o.Kind == descriptor.Denied {
		return true
	}
	s := tightest(r.statuses(o))
	return s != nil && s.Exceeded
}

// ruleOf returns the rule of a take, nil when there is none.
func (r *ruling) ruleOf(take int) *descriptor.Rule {
	if take < len(r.plan.Applied) {
		return r.plan.Applied[take]
	}
	if o := r.outcomeOf(take); o != nil {
		return o.Rule
	}
	return nil
}

// missing reports whether the descriptor takes from a limit that no level has.
func (r *ruling) missing(o *descriptor.Outcome) bool {
	d := &r.decision
	return d.MissingLimit != "" && o.Kind == descriptor.Takes &&
		o.First <= d.MissingTake && d.MissingTake < o.First+o.Count
}

// disabled reports whether the descriptor takes from a disabled subject.
func (r *ruling) disabled(o *descriptor.Outcome) bool {
	d := &r.decision
	return d.Reason == limiter.ReasonDisabled && o.Kind == descriptor.Takes && o.Mode == limiter.Consume &&
		(d.Disabled.Subject.Kind == limiter.RefSystemLimits || o.First <= d.Disabled.Take && d.Disabled.Take < o.First+o.Count)
}

// denier returns the tightest status that denied; nil when no limit denied.
func (r *ruling) denier() *limiter.LimitStatus {
	if s := tightest(r.decision.Statuses); s != nil && s.Exceeded {
		return s
	}
	return nil
}

// firstOver returns the rule of the first descriptor that denied, or nil.
func (r *ruling) firstOver() *descriptor.Rule {
	for i := range r.plan.Outcomes {
		if o := &r.plan.Outcomes[i]; r.over(o) {
			return o.Rule
		}
	}
	return nil
}

// retryAfter returns the whole seconds after which the call would be admitted. It returns 0 if the
// call was admitted, never will be, or the time is unknown.
func (r *ruling) retryAfter() int64 {
	if !r.verdict.denied || r.decision.Reason != limiter.ReasonExhausted {
		return 0
	}
	return max(1, ceilSeconds(r.decision.RetryAfter))
}

// unlimited reports whether no limit bounds the descriptor: its rule is unlimited, or every limit
// that it consumes is.
func (r *ruling) unlimited(o *descriptor.Outcome) bool {
	if o.Kind == descriptor.Takes {
		return o.Count > 0 && !r.missing(o) && !r.verdict.denied && r.verdict.policy == limiter.Unset
	}
	return o.Kind == descriptor.Unlimited || o.Kind == descriptor.Exempt
}

// booking returns the result of the descriptor's charges or refunds. A charge that has no take is lost.
func (r *ruling) booking(o *descriptor.Outcome) string {
	if r.missing(o) || o.Why != "" && o.Count == 0 {
		return bookingLost
	}
	return cmp.Or(r.verdict.unbooked, bookingDone)
}

// denial returns the limit that denied the descriptor, "" for none, and the reason.
func (r *ruling) denial(o *descriptor.Outcome) (limit, reason string) {
	if s := tightest(r.statuses(o)); s != nil && s.Exceeded {
		if s.Never {
			return s.Limit.Name, limiter.ReasonExceedsCapacity.String()
		}
		return s.Limit.Name, limiter.ReasonExhausted.String()
	}
	switch {
	case o.Kind == descriptor.Denied:
		return "", o.Why
	case o.Kind == descriptor.Unmatched:
		return "", reasonUnmatched
	case r.missing(o):
		return r.decision.MissingLimit, r.verdict.reason
	default:
		return "", r.verdict.reason
	}
}

// clearDecision empties the decision, and keeps its memory.
func (r *ruling) clearDecision() {
	d := &r.decision
	d.Reason, d.MissingLimit, d.Statuses = limiter.ReasonNone, "", d.Statuses[:0]
}

// cannotAdmit denies the call without a request to the limiter if a descriptor can never be
// admitted.
func (r *ruling) cannotAdmit() bool {
	for i := range r.plan.Outcomes {
		switch o := &r.plan.Outcomes[i]; {
		case o.Kind == descriptor.Denied && !o.Quota:
			r.verdict = verdict{denied: true, reason: o.Why}
			return true
		case r.unmatchedDenied(o):
			r.verdict = verdict{denied: true, reason: reasonUnmatched}
			return true
		}
	}
	return false
}

// clearBooked clears Exceeded in the statuses of charges and refunds, which never deny.
func (r *ruling) clearBooked() {
	for i := range r.decision.Statuses {
		if st := &r.decision.Statuses[i]; r.plan.Request.Takes[st.Take].Mode != limiter.Consume {
			st.Exceeded = false // a take of the same bucket was denied
		}
	}
}

// unbooked returns the result of charges and refunds that were not booked; "" when they were.
func unbooked(d *limiter.Decision) string {
	switch {
	case d.Policy == limiter.Unset:
		return ""
	case d.Kept:
		return bookingKept
	case errors.Is(d.Unavailable, limiter.ErrUncertain):
		return bookingUncertain
	default:
		return bookingLost
	}
}

// undecided returns the verdict of a call without a decision of the limiter.
func undecided(policy limiter.Policy, reason string) verdict {
	v := verdict{reason: reason, blanket: true, unbooked: bookingLost, policy: limiter.Allow}
	if policy != limiter.Unset && policy != limiter.Allow {
		v.denied, v.policy = true, limiter.Deny
	}
	return v
}

// judge marks the limits without enough tokens for the charges of the call.
func (r *ruling) judge() { judge(&r.plan.Request, &r.decision) }
