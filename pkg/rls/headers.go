package rls

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// appendHeaders appends the response headers. s stands for the limits of the call; nil = it has
// none.
func (c *call) appendHeaders(b []byte, s *limiter.LimitStatus, refused *refusal) []byte {
	on := &c.options.Headers
	if seconds := c.retryAfter(); seconds > 0 && on.RetryAfter {
		b = appendNumberHeader(b, "retry-after", seconds)
	}
	if refused.contentType != "" {
		var h header
		b, h = beginHeader(b, "content-type")
		b = h.end(append(b, refused.contentType...))
	}
	if s == nil {
		return b
	}
	if on.XRateLimit {
		b = appendXRateLimit(b, s)
	}
	if t := tightestNamed(c.decision.Statuses, on.OpenAI.Requests); t != nil {
		b = appendOpenAI(b, t, "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests")
	}
	if t := tightestNamed(c.decision.Statuses, on.OpenAI.Tokens); t != nil {
		b = appendOpenAI(b, t, "x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens")
	}
	if on.IETF {
		b = appendIETF(b, c.decision.Statuses)
	}
	return b
}

func appendXRateLimit(b []byte, s *limiter.LimitStatus) []byte {
	b = appendLimitHeader(b, s.Limit)
	b = appendNumberHeader(b, "x-ratelimit-remaining", remaining(s))
	if seconds, ok := resetSeconds(s); ok {
		b = appendNumberHeader(b, "x-ratelimit-reset", seconds)
	}
	return b
}

// appendLimitHeader appends x-ratelimit-limit as Envoy writes it: 10, 10;w=60;name="rpm". The first
// number is the capacity, which the remaining tokens never exceed. If it is not the refill of the
// window, the policy names it: 15, 10;w=60;burst=15;name="rpm".
func appendLimitHeader(b []byte, l *limiter.Limit) []byte {
	b, h := beginHeader(b, "x-ratelimit-limit")
	b = strconv.AppendInt(b, l.Capacity, 10)
	amount, period := l.PerPeriod()
	if w := windowOf(period); w.unit != 0 {
		b = append(b, ", "...)
		b = strconv.AppendInt(b, amount, 10)
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, w.seconds(), 10)
		if l.Capacity != amount {
			b = append(b, ";burst="...)
			b = strconv.AppendInt(b, l.Capacity, 10)
		}
		b = append(b, `;name="`...)
		b = appendToken(b, l.Name)
		b = append(b, '"')
	}
	return h.end(b)
}

// appendOpenAI appends the headers of one limit under OpenAI's names.
func appendOpenAI(b []byte, s *limiter.LimitStatus, limit, left, reset string) []byte {
	b = appendNumberHeader(b, limit, s.Limit.Capacity)
	b = appendNumberHeader(b, left, remaining(s))
	if d, ok := timeToReset(s); ok {
		var h header
		b, h = beginHeader(b, reset)
		b = h.end(appendDuration(b, d))
	}
	return b
}

// appendDuration appends d in the form of Go, rounded up: below a second to milliseconds, "12ms",
// and from there to seconds, "6m0s". 0 and below is "0s". There is no fraction, as some clients
// that read these headers drop it.
func appendDuration(b []byte, d time.Duration) []byte {
	const ms = time.Millisecond
	if d > 0 && d <= time.Second-ms {
		return append(strconv.AppendInt(b, int64((d+ms-1)/ms), 10), "ms"...)
	}
	seconds := min(ceilSeconds(d), int64(math.MaxInt64/time.Second)) // the most that a duration holds
	if seconds >= 60*60 {
		b = append(strconv.AppendInt(b, seconds/(60*60), 10), 'h')
	}
	if seconds >= 60 {
		b = append(strconv.AppendInt(b, seconds/60%60, 10), 'm')
	}
	return append(strconv.AppendInt(b, seconds%60, 10), 's')
}

// appendIETF appends the fields of draft-ietf-httpapi-ratelimit-headers-11, which
// are lists of strings with parameters: "rpm";q=10;w=60 and "rpm";r=4;t=36.
func appendIETF(b []byte, statuses []limiter.LimitStatus) []byte {
	var room [limiter.MaxLimits]*limiter.LimitStatus
	speakers := tightestByName(room[:0], statuses)
	if len(speakers) == 0 {
		return b
	}
	b, h := beginHeader(b, "ratelimit-policy")
	for i, s := range speakers {
		b = appendItem(b, i, s.Limit.Name)
		b = appendParameter(b, ";q=", s.Limit.Capacity)
		b = appendParameter(b, ";w=", fillSeconds(s.Limit))
	}
	b, h = beginHeader(h.end(b), "ratelimit")
	for i, s := range speakers {
		b = appendItem(b, i, s.Limit.Name)
		b = appendParameter(b, ";r=", remaining(s))
		if seconds, ok := resetSeconds(s); ok {
			b = appendParameter(b, ";t=", seconds)
		}
	}
	return h.end(b)
}

func appendItem(b []byte, i int, name string) []byte {
	if i > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	return append(appendToken(b, name), '"')
}

func appendParameter(b []byte, name string, v int64) []byte {
	return strconv.AppendInt(append(b, name...), v, 10)
}

// fillSeconds returns the whole seconds, rounded up, in which the limit's bucket refills from
// empty. This is the window of its capacity.
func fillSeconds(l *limiter.Limit) int64 {
	if l.Windowed() {
		_, period := l.PerPeriod()
		return ceilSeconds(period)
	}
	ms := tokenbucket.Bucket{}.TimeToFull(l.Params(), 0)
	return ceilSeconds(time.Duration(ms) * time.Millisecond)
}

// tightestNamed returns the tightest status of the limits with the name, or nil.
func tightestNamed(statuses []limiter.LimitStatus, name string) *limiter.LimitStatus {
	var t *limiter.LimitStatus
	if name == "" {
		return nil
	}
	for i := range statuses {
		if s := &statuses[i]; s.Limit.Name == name && (t == nil || tighter(s, t)) {
			t = s
		}
	}
	return t
}

// tightestByName appends the tightest status of each name, in order of first appearance.
func tightestByName(all []*limiter.LimitStatus, statuses []limiter.LimitStatus) []*limiter.LimitStatus {
	for i := range statuses {
		s := &statuses[i]
		j := slices.IndexFunc(all, func(t *limiter.LimitStatus) bool { return t.Limit.Name == s.Limit.Name })
		switch {
		case j < 0:
			all = append(all, s)
		case tighter(s, all[j]):
			all[j] = s
		}
	}
	return all
}

// remaining returns the whole tokens left, 0 to the capacity.
func remaining(s *limiter.LimitStatus) int64 {
	return min(wholeTokens(s.Available), s.Limit.Capacity)
}

// header is a response header whose value is being appended.
type header struct{ message, value int }

// beginHeader begins a response header; its value follows, and then end.
func beginHeader(b []byte, name string) ([]byte, header) {
	var h header
	b, h.message = begin(b, responseHeaders)
	b = appendString(b, headerKey, name)
	b, h.value = begin(b, headerValue)
	return b, h
}

func (h header) end(b []byte) []byte { return end(end(b, h.value), h.message) }

func appendNumberHeader(b []byte, name string, v int64) []byte {
	b, h := beginHeader(b, name)
	return h.end(strconv.AppendInt(b, v, 10))
}
