package rls

import (
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// encode writes the answer as a RateLimitResponse to c.out.
func (c *call) encode() {
	lenient := c.plan.Domain != nil && c.plan.Domain.OfFile() && c.options.Files.Shadow
	b := appendUint(c.out[:0], responseCode, overallCode(c.verdict.denied && !lenient))
	b, speaker, quoted := c.appendStatuses(b)
	c.verdict.denied = c.verdict.denied && !lenient // the statuses say otherwise
	refused := c.refused()
	c.status = refused.httpStatus()
	if c.plan.Domain != nil && c.plan.Domain.OfFile() && !c.options.Files.OwnHeaders {
		b = c.appendQuotedHeaders(b, &quoted)
	} else {
		b = c.appendHeaders(b, speaker, &refused)
	}
	b = refused.appendBody(b, &c.options.Headers.OpenAI)
	c.out = c.appendMetadata(b, &refused)
}

// appendStatuses appends the status of each descriptor. It returns the limits that speak for the call, none without
// any.
func (c *call) appendStatuses(b []byte) (_ []byte, speaker *limiter.LimitStatus, best quoted) {
	bestOver := false
	for i := range c.plan.Outcomes {
		o := &c.plan.Outcomes[i]
		s := tightest(c.statuses(o))
		if s != nil && (speaker == nil || tighter(s, speaker)) {
			speaker = s
		}
		of, quotes := o.Rule.Quoted()
		if !quotes {
			b = c.appendStatus(b, o, s)
			continue
		}
		q := c.quote(i, o, s, of)
		b = c.appendQuoted(b, o, &q)
		if over := c.over(o) && !o.Quota; q.speaks(&best, over, bestOver) {
			best, bestOver = q, over
		}
	}
	return b, speaker, best
}

// appendStatus appends a descriptor's DescriptorStatus. s stands for its limits; nil = it has none.
func (c *call) appendStatus(b []byte, o *descriptor.Outcome, s *limiter.LimitStatus) []byte {
	b, mark := begin(b, responseStatuses)
	b = appendUint(b, statusCode, overallCode(c.over(o)))
	switch {
	case s != nil:
		amount, period := s.Limit.PerPeriod()
		b = appendRateLimit(b, s.Limit.Name, amount, period)
		b = appendUint(b, statusRemaining, uint64(clamp32(wholeTokens(s.Available))))
		seconds, ok := resetSeconds(s)
		b = appendReset(b, seconds, ok)
	case c.unlimited(o):
		b = appendUint(b, statusRemaining, math.MaxUint32)
	}
	return end(b, mark)
}

// appendReset appends the time until a limit is new again, if it is known.
func appendReset(b []byte, seconds int64, known bool) []byte {
	if !known {
		return b
	}
	b, reset := begin(b, statusReset)
	return end(appendUint(b, durationSeconds, uint64(seconds)), reset) // #nosec G115 -- 0 or above
}

// appendRateLimit appends a RateLimit. Numbers beyond the range of protobuf are cut.
func appendRateLimit(b []byte, name string, amount int64, period time.Duration) []byte {
	b, mark := begin(b, statusLimit)
	b = appendUint(b, limitRequests, uint64(clamp32(amount)))
	w := windowOf(period)
	b = appendUint(b, limitUnit, uint64(w.unit)) // #nosec G115 -- 0 to 7
	if name != "" {
		var at int
		b, at = begin(b, limitName)
		b = end(appendToken(b, name), at)
	}
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
