package rls

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The content types of bodies.
const (
	typeText    = "text/plain; charset=utf-8"
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
)

// refusal is the parts of a denial that are not those of its limits. The zero refusal is that of an admitted
// call.
type refusal struct {
	status      int // over HTTP; 0 = the call is admitted
	ofRule      int // status that the rule gives; 0 = none
	body        descriptor.Body
	contentType string // "" = there is no body
	limit       *limiter.LimitStatus
	reason      string
	seconds     int64 // until the call would pass; 0 = never, or not known
}

// refused returns the refusal of the call.
func (c *call) refused() (r refusal) {
	if !c.verdict.denied {
		return r
	}
	r = refusal{status: http.StatusTooManyRequests, body: c.options.Body, limit: c.denier(), reason: c.verdict.reason, seconds: c.retryAfter()}
	if c.plan.Domain != nil {
		r.body = c.plan.Domain.Body()
	}
	if rule := c.firstOver(); rule != nil && rule.Denial() != nil {
		d := rule.Denial()
		if r.ofRule = d.Status; r.ofRule != 0 {
			r.status = r.ofRule
		}
		if d.Body != "" {
			r.body = descriptor.Body{Form: descriptor.BodyText, Text: d.Body}
		}
	}
	types := [...]string{descriptor.NoBody: "", descriptor.BodyText: cmp.Or(r.body.Type, typeText), descriptor.BodyOpenAI: typeJSON, descriptor.BodyProblem: typeProblem}
	r.contentType = types[r.body.Form]
	return r
}

// httpStatus is the status of the answer over HTTP.
func (r *refusal) httpStatus() int { return cmp.Or(r.status, http.StatusOK) }

// appendBody appends the raw body of a denial. on names the limits of requests and of tokens.
func (r *refusal) appendBody(b []byte, on *OpenAIHeaders) []byte {
	if r.contentType == "" {
		return b
	}
	b, mark := begin(b, responseBody)
	switch r.body.Form {
	case descriptor.BodyText:
		b = r.appendText(b)
	case descriptor.BodyOpenAI:
		b = r.appendOpenAI(b, on)
	case descriptor.BodyProblem:
		b = r.appendProblem(b)
	case descriptor.NoBody:
	}
	return end(b, mark)
}

// appendText appends a text of one's own. No value of a placeholder needs escaping in JSON, see appendReason.
func (r *refusal) appendText(b []byte) []byte {
	for part, placeholder := range descriptor.BodyParts(r.body.Text) {
		if placeholder {
			b = r.appendValue(b, part)
		} else {
			b = append(b, part...)
		}
	}
	return b
}

// appendValue appends the value of a placeholder.
func (r *refusal) appendValue(b []byte, placeholder string) []byte {
	switch placeholder {
	case descriptor.BodyMessage:
		return r.appendReason(b)
	case descriptor.BodyReason:
		return append(b, r.reason...)
	case descriptor.BodyRetryAfter:
		return strconv.AppendInt(b, r.seconds, 10)
	case descriptor.BodyStatus:
		return strconv.AppendInt(b, int64(r.status), 10)
	case descriptor.BodyRemaining:
		left := int64(0)
		if r.limit != nil {
			left = remaining(r.limit)
		}
		return strconv.AppendInt(b, left, 10)
	case descriptor.BodyLimit:
		if r.limit != nil {
			return appendToken(b, r.limit.Limit.Name)
		}
	}
	return b
}

// appendOpenAI appends the object that the API of OpenAI answers with status 429. A quota by the calendar
// answers as one that is used up.
func (r *refusal) appendOpenAI(b []byte, on *OpenAIHeaders) []byte {
	kind, code := "rate_limit_error", "rate_limit_exceeded"
	switch s := r.limit; {
	case s == nil:
	case s.Limit.IsQuota():
		kind, code = "insufficient_quota", "insufficient_quota"
	case s.Limit.Name == on.Requests:
		kind = "requests"
	case s.Limit.Name == on.Tokens:
		kind = "tokens"
	}
	b = append(b, `{"error":{"message":"`...)
	b = r.appendReason(b)
	b = append(append(b, `","type":"`...), kind...)
	return append(append(append(b, `","param":null,"code":"`...), code...), `"}}`...)
}

// appendProblem appends the object of RFC 9457. The problem type of a limit is that of
// draft-ietf-httpapi-ratelimit-headers.
func (r *refusal) appendProblem(b []byte) []byte {
	if r.limit == nil {
		b = append(append(b, `{"type":"about:blank","title":"`...), http.StatusText(r.status)...)
	} else {
		b = append(b, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded`...)
	}
	b = strconv.AppendInt(append(b, `","status":`...), int64(r.status), 10)
	b = r.appendReason(append(b, `,"detail":"`...))
	b = append(b, '"')
	if r.limit != nil {
		b = append(appendToken(append(b, `,"violated-policies":["`...), r.limit.Limit.Name), `"]`...)
	}
	return append(b, '}')
}

// appendReason says why the call is denied. The text needs no escaping: names of limits are letters, digits
// and signs, and the reasons are fixed words.
func (r *refusal) appendReason(b []byte) []byte {
	switch {
	case r.limit == nil:
		b = append(append(b, "The request is denied: "...), r.reason...)
	case r.limit.Never:
		b = appendToken(append(b, "The request asks for more than the limit "...), r.limit.Limit.Name)
		b = append(b, " ever admits"...)
	default:
		b = appendToken(append(b, "The limit "...), r.limit.Limit.Name)
		b = strconv.AppendInt(append(b, " is reached. Try again in "...), max(r.seconds, 1), 10)
		b = append(b, " second"...)
		if r.seconds > 1 {
			b = append(b, 's')
		}
	}
	return append(b, '.')
}
