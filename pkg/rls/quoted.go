package rls

import (
	"math"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Files of envoyproxy/ratelimit have the statuses and headers of that service. Each descriptor with a limit has them,
// also beside a denial.

// quoted is the content of the status of a descriptor of such a file. The zero value is empty.
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

// quote returns the content of the status of the i-th descriptor. s stands for its limits; nil = it has none.
func quote(c *call, i int, o *descriptor.Outcome, s *limiter.LimitStatus, of descriptor.Quoted) quoted {
	denied := o.Kind == descriptor.Denied
	if o.Rule.Shadow() {
		if r := shadowOf(c.shadows, i); r != nil {
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
			q.remaining = uint64(clamp32(wholeTokens(s.Available) + takenAfter(c, o, s)))
		}
		if q.reset, q.known = resetSeconds(s); !q.known && q.period > 0 {
			q.reset, q.known = untilWindow(c.in.Now, q.period), true
		}
	case of.Unit > 0 && of.RequestsPerUnit == 0 && (denied || o.Kind == descriptor.Takes || o.Rule.Shadow()):
		q.limited, q.known = true, true
		q.reset = untilWindow(c.in.Now, of.Unit)
	case o.Kind == descriptor.Unlimited && !o.Silent && !o.Rule.Shadow():
		q.unlimited = true
	}
	return q
}

// untilWindow returns the seconds until the next window of that service, where more is never admitted.
func untilWindow(now time.Time, unit time.Duration) int64 {
	return ceilSeconds(unit - time.Duration(now.UnixNano())%unit)
}

// takenAfter returns the whole tokens that later descriptors of the call took from the same bucket.
func takenAfter(c *call, o *descriptor.Outcome, s *limiter.LimitStatus) (tokens int64) {
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
func shadowOf(all []shadowResult, i int) *shadowResult {
	k := slices.IndexFunc(all, func(r shadowResult) bool { return r.descriptor == i })
	if k < 0 {
		return nil
	}
	return &all[k]
}

// appendStatus appends the DescriptorStatus of a descriptor, which is over its limit or not.
func (q *quoted) appendStatus(b []byte, over bool) []byte {
	b, mark := begin(b, responseStatuses)
	b = appendUint(b, statusCode, overallCode(over))
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

// appendHeaders appends the headers of the limit that speaks for the call.
func (q *quoted) appendHeaders(b []byte, names *FileHeaders) []byte {
	if !q.limited || names.Limit == "" {
		return b
	}
	b = appendNumberHeader(b, names.Limit, q.requests)
	b = appendNumberHeader(b, names.Remaining, int64(q.remaining)) // #nosec G115 -- it has 32 bits
	return appendNumberHeader(b, names.Reset, q.reset)
}
