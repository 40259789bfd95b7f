package rls

import (
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
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
	refused := c.refused()
	c.status = refused.httpStatus()
	b = c.appendHeaders(b, speaker, &refused)
	b = refused.appendBody(b, &c.options.Headers.OpenAI)
	c.out = c.appendMetadata(b, &refused)
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

// appendLimit appends a RateLimit. Numbers beyond the range of protobuf are cut.
func appendLimit(b []byte, l *limiter.Limit) []byte {
	b, mark := begin(b, statusLimit)
	amount, period := l.PerPeriod()
	b = appendUint(b, limitRequests, uint64(clamp32(amount)))
	w := windowOf(period)
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

// answer is an encoded RateLimitResponse, with the properties that transports need.
type answer struct {
	data   []byte
	denied bool
	status int // over HTTP
}

// Denied reports whether the answer is a denial.
func (a *answer) Denied() bool { return a.denied }

// answer returns a copy of the encoded answer, as the call is used again before grpc has sent it.
func (c *call) answer() *answer {
	return &answer{data: slices.Clone(c.out), denied: c.verdict.denied, status: c.status}
}
