package rls

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Codes of RateLimitResponse. Zero is UNKNOWN, which Envoy reads as OK, and is never sent.
const (
	codeOK        = 1
	codeOverLimit = 2
)

// Fields of envoy.service.ratelimit.v3.RateLimitResponse and its parts.
const (
	responseCode     = 1
	responseStatuses = 2
	responseHeaders  = 3
	responseMetadata = 6

	statusCode      = 1
	statusLimit     = 2
	statusRemaining = 3
	statusReset     = 4

	limitRequests   = 1
	limitUnit       = 2
	limitName       = 3
	limitMultiplier = 4

	durationSeconds = 1

	headerKey   = 1
	headerValue = 2
)

// encode writes the answer as a RateLimitResponse to c.out.
func (c *call) encode() {
	b := appendUint(c.out[:0], responseCode, overallCode(c.verdict.denied))
	var speaker *limiter.LimitStatus
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		s := tightest(c.statuses(o))
		b = c.appendStatus(b, o, s)
		if s != nil && (speaker == nil || tighter(s, speaker)) {
			speaker = s
		}
	}
	b = c.appendHeaders(b, speaker)
	c.out = c.appendMetadata(b)
}

func overallCode(denied bool) uint64 {
	if denied {
		return codeOverLimit
	}
	return codeOK
}

// appendStatus appends a descriptor's DescriptorStatus. s stands for its limits; nil = it has none.
func (c *call) appendStatus(b []byte, o *descriptor.Outcome, s *limiter.LimitStatus) []byte {
	b, mark := begin(b, responseStatuses)
	b = appendUint(b, statusCode, overallCode(c.over(o)))
	switch {
	case s != nil:
		b = appendLimit(b, s.Limit)
		b = appendUint(b, statusRemaining, uint64(clamp32(wholeTokens(s.Available))))
		if seconds, ok := resetSeconds(s); ok {
			var reset int
			b, reset = begin(b, statusReset)
			b = end(appendUint(b, durationSeconds, uint64(seconds)), reset) // #nosec G115 -- 0 or above
		}
	case c.unlimited(o):
		b = appendUint(b, statusRemaining, math.MaxUint32)
	}
	return end(b, mark)
}

// unlimited reports whether no limit bounds the descriptor: its rule is unlimited, or every limit
// that it consumes is.
func (c *call) unlimited(o *descriptor.Outcome) bool {
	if o.Kind == descriptor.Takes {
		return o.Count > 0 && !c.missing(o) && !c.verdict.denied && c.verdict.policy == limiter.Unset
	}
	return o.Kind == descriptor.Unlimited
}

// appendLimit appends a RateLimit. Numbers beyond the range of protobuf are cut.
func appendLimit(b []byte, l *limiter.Limit) []byte {
	b, mark := begin(b, statusLimit)
	b = appendUint(b, limitRequests, uint64(clamp32(l.RefillAmount)))
	w := windowOf(l.RefillPeriod)
	b = appendUint(b, limitUnit, uint64(w.unit)) // #nosec G115 -- 0 to 7
	b, name := begin(b, limitName)
	b = end(appendToken(b, l.Name), name)
	if w.multiplier > 1 {
		var multiplier int
		b, multiplier = begin(b, limitMultiplier)
		b = end(appendUint(b, 1, uint64(clamp32(w.multiplier))), multiplier)
	}
	return end(b, mark)
}

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

// readHeaders calls f for each response header of an encoded answer.
func readHeaders(answer []byte, f func(name, value string)) {
	for m := (message{answer, string(answer)}); len(m.raw) > 0; {
		h, err := m.next()
		if err != nil {
			return
		}
		if h.tag != responseHeaders<<3|uint64(protowire.BytesType) {
			continue
		}
		if e, err := decodeEntry(h.body); err == nil { // a HeaderValue has the fields of an entry
			f(e.Key, e.Value)
		}
	}
}
