package rls

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Files of envoyproxy/ratelimit have statuses and headers as that service has them: for each descriptor with a
// limit, whatever happened to the others of the call.

// quoted is what a descriptor of such a file says in its status. The zero value says nothing.
type quoted struct {
	limited   bool // it has the limit
	name      string
	requests  int64
	period    time.Duration
	remaining uint64
	reset     int64 // seconds, with known
	known     bool
	unlimited bool // remaining is the most, and stands alone
}

// quote returns what the status of the i-th descriptor says. s stands for its limits; nil = it has none.
func (c *call) quote(i int, o *descriptor.Outcome, s *limiter.LimitStatus, of descriptor.Quoted) quoted {
	denied := o.Kind == descriptor.Denied
	if o.Rule.Shadow() {
		if r := c.shadowOf(i); r != nil {
			denied = r.denied
			if r.limited {
				s = &r.status
			}
		}
	}
	if own := c.in.Descriptors[i].Limit; own != nil && own.Requests == 0 {
		of.Unit = own.Period
	}
	q := quoted{name: of.Name, requests: int64(of.RequestsPerUnit), period: of.Unit}
	switch {
	case s != nil:
		q.limited = true
		q.requests, q.period = s.Limit.PerPeriod()
		if !s.Exceeded {
			q.remaining = uint64(clamp32(wholeTokens(s.Available) + c.takenAfter(o, s)))
		}
		if q.reset, q.known = resetSeconds(s); !q.known && q.period > 0 {
			q.reset, q.known = c.untilWindow(q.period), true
		}
	case of.Unit > 0 && of.RequestsPerUnit == 0 && (denied || o.Kind == descriptor.Takes || o.Rule.Shadow()):
		q.limited, q.known = true, true
		q.reset = c.untilWindow(of.Unit)
	case o.Kind == descriptor.Unlimited && !o.Silent && !o.Rule.Shadow():
		q.unlimited = true
	}
	return q
}

// untilWindow returns the seconds until the next window of that service, where more is never admitted.
func (c *call) untilWindow(unit time.Duration) int64 {
	return ceilSeconds(unit - time.Duration(c.in.Now.UnixNano())%unit)
}

// takenAfter returns the whole tokens that later descriptors of the call took from the same bucket.
func (c *call) takenAfter(o *descriptor.Outcome, s *limiter.LimitStatus) (tokens int64) {
	if c.verdict.denied || o.Kind != descriptor.Takes {
		return 0
	}
	takes := c.plan.Request.Takes
	for i := o.First + o.Count; i < len(takes); i++ {
		if t := &takes[i]; t.Entity == s.Entity && t.LimitsOf == takes[s.Take].LimitsOf && t.Mode == limiter.Consume {
			tokens += amountOf(t, s.Limit.Name) / limiter.Milli
		}
	}
	return tokens
}

// shadowOf returns the decision of the shadow rule for the i-th descriptor; nil = there is none.
func (c *call) shadowOf(i int) *shadowResult {
	for k := range c.shadows {
		if c.shadows[k].descriptor == i {
			return &c.shadows[k]
		}
	}
	return nil
}

// appendQuoted appends the DescriptorStatus of a descriptor.
func (c *call) appendQuoted(b []byte, o *descriptor.Outcome, q *quoted) []byte {
	b, mark := begin(b, responseStatuses)
	b = appendUint(b, statusCode, overallCode(c.over(o)))
	if q.limited {
		b = appendRateLimit(b, q.name, q.requests, q.period)
		b = appendUint(b, statusRemaining, q.remaining)
		b = appendReset(b, q.reset, q.known)
	}
	if q.unlimited {
		b = appendUint(b, statusRemaining, math.MaxUint32)
	}
	return end(b, mark)
}

// speaks reports whether the headers tell of q rather than of best, which comes before it; over and bestOver say
// whether they deny. The last one that denies speaks, else the one with the fewest requests left.
func (q *quoted) speaks(best *quoted, over, bestOver bool) bool {
	switch {
	case !q.limited:
		return false
	case !best.limited || over:
		return true
	default:
		return !bestOver && q.remaining < best.remaining
	}
}

// appendQuotedHeaders appends the headers of the limit that speaks for the call.
func (c *call) appendQuotedHeaders(b []byte, q *quoted) []byte {
	on := &c.options.Files
	if !q.limited || on.Headers.Limit == "" {
		return b
	}
	b = appendNumberHeader(b, on.Headers.Limit, q.requests)
	b = appendNumberHeader(b, on.Headers.Remaining, int64(q.remaining)) // #nosec G115 -- it has 32 bits
	return appendNumberHeader(b, on.Headers.Reset, q.reset)
}

// lookAtRest finds the balances of the descriptors that a denial left unasked.
func (s *Service) lookAtRest(ctx context.Context, now time.Time, c *call) {
	d, verdict := &c.decision, c.verdict
	if !verdict.denied || verdict.blanket || verdict.policy != limiter.Unset || c.plan.Domain == nil || !c.plan.Domain.OfFile() {
		return
	}
	reason, retry := d.Reason, d.RetryAfter
	c.part.look = true
	asked := s.askPart(ctx, now, c, func(o *descriptor.Outcome) bool { return len(c.statuses(o)) == 0 })
	c.part.look = false
	d.Reason, d.RetryAfter, d.MissingLimit, c.verdict = reason, retry, "", verdict
	if !asked {
		return
	}
	for i := range d.Statuses {
		st := &d.Statuses[i]
		if !slices.Contains(c.part.index, st.Take) {
			continue
		}
		amount := int64(0) // a charge was booked
		if t := &c.plan.Request.Takes[st.Take]; t.Mode == limiter.Consume {
			amount = amountOf(t, st.Limit.Name)
		}
		need(st, amount)
	}
}

// judgePeeks makes the statuses of peeks those of such a file: a peek is over its limit in debt only.
func (c *call) judgePeeks() {
	for i := range c.plan.Outcomes {
		if o := &c.plan.Outcomes[i]; o.Peek {
			all := c.statuses(o)
			for k := range all {
				need(&all[k], 0)
			}
		}
	}
}

// need sets whether a status has too little for an amount, 0 = any balance that is no debt, and how long that lasts.
func need(s *limiter.LimitStatus, amount int64) {
	s.Exceeded, s.Never, s.RetryAfter = s.Available < amount, false, 0
	if !s.Exceeded {
		return
	}
	retry, ok := tokenbucket.Bucket{Tokens: s.Available}.RetryAfter(s.Limit.Params(), cmp.Or(amount, limiter.Milli), 0)
	s.Never, s.RetryAfter = !ok, time.Duration(retry)*time.Millisecond
}
