package rls

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// resetSeconds is [timeToReset] in whole seconds.
func resetSeconds(s *limiter.LimitStatus) (seconds int64, ok bool) {
	reset, ok := timeToReset(s)
	return ceilSeconds(reset), ok
}

// timeToReset returns the time until the request would be admitted. If its limit did not deny it,
// that is the time until the bucket is full. ok is false when it never will be.
func timeToReset(s *limiter.LimitStatus) (reset time.Duration, ok bool) {
	switch {
	case !s.Exceeded:
		return s.Reset, true
	case s.Never:
		return 0, false
	default:
		return max(time.Millisecond, s.RetryAfter), true
	}
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

// judge makes the statuses of charges like those of takes. A limit denies when its balance is below
// zero after the charge. It admits the same amount again when the balance has grown to it.
func judge(req *limiter.Request, d *limiter.Decision) {
	for i := range d.Statuses {
		s := &d.Statuses[i]
		t := &req.Takes[s.Take]
		if t.Mode != limiter.Charge || s.Available >= 0 {
			continue
		}
		for _, consumed := range t.Consume {
			if consumed.Limit == s.Limit.Name {
				s.Requested = consumed.Amount
			}
		}
		exceed(s, s.Requested)
		d.Admitted = false
	}
}

// exceed makes a status one that is over its limit until the balance has grown to an amount.
func exceed(s *limiter.LimitStatus, amount int64) {
	retry, ok := tokenbucket.Bucket{Tokens: s.Available}.RetryAfter(s.Limit.Params(), amount, 0)
	s.Exceeded, s.Never, s.RetryAfter = true, !ok, time.Duration(retry)*time.Millisecond
}
