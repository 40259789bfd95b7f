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
	lenient := ofFile(&c.plan) && c.options.Files.Shadow
	b := appendUint(c.out[:0], responseCode, overallCode(c.verdict.denied && !lenient))
	b, speaker, quoted := c.appendStatuses(b)
	c.verdict.denied = c.verdict.denied && !lenient // the statuses say otherwise
	refused := c.refused()
	c.status = refused.httpStatus()
	if ofFile(&c.plan) && !c.options.Files.OwnHeaders {
		b = quoted.appendHeaders(b, &c.options.Files.Headers)
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
		if ofLimits(&c.plan) || c.method != nil {
			continue // as limitador
		}
		of, quotes := descriptor.Quote(o.Rule)
		if !quotes {
			b = c.appendStatus(b, o, s)
			continue
		}
		q := quote(c, i, o, s, of)
		b = q.appendStatus(b, c.over(o))
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
