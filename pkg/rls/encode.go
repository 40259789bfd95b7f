package rls

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Codes of RateLimitResponse. Zero is UNKNOWN, which Envoy takes for OK, and is never sent.
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

// appendStatus appends a descriptor's DescriptorStatus; s speaks for its limits, nil = none does.
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

// unlimited reports whether nothing bounds the descriptor: its rule says so, or
// every limit that it consumes is unlimited.
func (c *call) unlimited(o *descriptor.Outcome) bool {
	if o.Kind == descriptor.Takes {
		return o.Count > 0 && !c.missing(o) && !c.verdict.denied && c.verdict.policy == limiter.Unset
	}
	return o.Kind == descriptor.Unlimited
}

// appendLimit appends a RateLimit. What protobuf has no room for is cut.
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

// resetSeconds returns the whole seconds until the request would pass, or, when
// its limit did not deny it, until the bucket is full. ok is false when it never will.
func resetSeconds(s *limiter.LimitStatus) (seconds int64, ok bool) {
	switch {
	case !s.Exceeded:
		return ceilSeconds(s.Reset), true
	case s.Never:
		return 0, false
	default:
		return max(1, ceilSeconds(s.RetryAfter)), true
	}
}

// appendHeaders appends the response headers; s speaks for the call, nil = no limit does.
func (c *call) appendHeaders(b []byte, s *limiter.LimitStatus) []byte {
	if seconds := c.retryAfter(); seconds > 0 && c.options.Headers.RetryAfter {
		b = appendNumberHeader(b, "retry-after", seconds)
	}
	if s == nil || !c.options.Headers.XRateLimit {
		return b
	}
	b = appendLimitHeader(b, s.Limit)
	b = appendNumberHeader(b, "x-ratelimit-remaining", wholeTokens(s.Available))
	if seconds, ok := resetSeconds(s); ok {
		b = appendNumberHeader(b, "x-ratelimit-reset", seconds)
	}
	return b
}

// retryAfter returns the whole seconds after which the call would pass, 0 when
// it was admitted, never will be, or nobody knows.
func (c *call) retryAfter() int64 {
	if !c.verdict.denied || c.decision.Reason != limiter.ReasonExhausted {
		return 0
	}
	return max(1, ceilSeconds(c.decision.RetryAfter))
}

func appendNumberHeader(b []byte, name string, v int64) []byte {
	b, header := begin(b, responseHeaders)
	b = appendString(b, headerKey, name)
	b, value := begin(b, headerValue)
	b = strconv.AppendInt(b, v, 10)
	return end(end(b, value), header)
}

// appendLimitHeader appends x-ratelimit-limit as Envoy writes it: 10, 10;w=60;name="rpm".
// The first number is the capacity, which what remains never exceeds; where it is
// not the refill of the window, the policy names it: 15, 10;w=60;burst=15;name="rpm".
func appendLimitHeader(b []byte, l *limiter.Limit) []byte {
	b, header := begin(b, responseHeaders)
	b = appendString(b, headerKey, "x-ratelimit-limit")
	b, value := begin(b, headerValue)
	b = strconv.AppendInt(b, l.Capacity, 10)
	if w := windowOf(l.RefillPeriod); w.unit != 0 {
		b = append(b, ", "...)
		b = strconv.AppendInt(b, l.RefillAmount, 10)
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, w.seconds(), 10)
		if l.Capacity != l.RefillAmount {
			b = append(b, ";burst="...)
			b = strconv.AppendInt(b, l.Capacity, 10)
		}
		b = append(b, `;name="`...)
		b = appendToken(b, l.Name)
		b = append(b, '"')
	}
	return end(end(b, value), header)
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
