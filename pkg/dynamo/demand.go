package dynamo

import (
	"math/bits"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

const (
	// demandMemory is the time over which demand is counted: what came so long ago
	// counts no more. In ms.
	demandMemory = int64(time.Second / time.Millisecond)
	// shortestSpan is the least time that a demand is taken to have come in, so that a
	// few requests at once are not taken for thousands a second. In ms.
	shortestSpan = int64(200 * time.Millisecond / time.Millisecond)

	// A lease is for the time in which leaseRequests come, but for no less than hotFor and
	// no more than limiter.MaxLeaseFor; and there is none for fewer than leastRequests.
	leaseRequests = 8
	leastRequests = 2
	hotFor        = 500 * time.Millisecond

	// worthRequests is how many requests the part of a bucket must be good for that one
	// process may lease: of a small bucket, or one that is nearly empty, a lease would save
	// few writes, and be missing to the others.
	worthRequests = 4

	// soon is the demand that a lease must have left; when it has less, more is asked for.
	// It is longer than a write takes.
	soon = 10 * time.Millisecond
)

// demand is how much a lane's requests ask for, those that are denied too. What was
// asked for fades in the course of demandMemory; all of it is whole numbers.
type demand struct {
	began    time.Time // of what is counted
	at       time.Time // that it is counted up to
	requests int64     // thousandths
	limits   []limitDemand
}

// limitDemand is the demand on one limit.
type limitDemand struct {
	limit    string
	tokens   int64 // millitokens
	requests int64 // thousandths, those that asked for tokens of the limit
}

// scaled returns n·num/den; den is above 0, the others not below 0.
func scaled(n, num, den int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(num)) // #nosec G115 -- not below 0
	if hi >= uint64(den) {                       // #nosec G115 -- above 0
		return tokenbucket.MaxAmount
	}
	q, _ := bits.Div64(hi, lo, uint64(den))             // #nosec G115 -- above 0
	return int64(min(q, uint64(tokenbucket.MaxAmount))) // #nosec G115 -- in range
}

// fade brings what is counted up to now.
func (d *demand) fade(now time.Time) {
	ms := now.Sub(d.at).Milliseconds()
	switch {
	case ms <= 0 && !d.at.IsZero():
		return
	case ms >= demandMemory || d.at.IsZero():
		*d = demand{began: now, at: now, limits: d.limits[:0]}
		return
	}
	d.at = d.at.Add(time.Duration(ms) * time.Millisecond)
	d.requests -= scaled(d.requests, ms, demandMemory)
	for i := range d.limits {
		l := &d.limits[i]
		l.tokens -= scaled(l.tokens, ms, demandMemory)
		l.requests -= scaled(l.requests, ms, demandMemory)
	}
	d.limits = slices.DeleteFunc(d.limits, func(l limitDemand) bool { return l.requests == 0 })
}

// count counts one request.
func (d *demand) count(now time.Time) {
	d.fade(now)
	d.requests += limiter.Milli
}

// add counts what the request that was counted last asks of a limit.
func (d *demand) add(limit string, n int64) {
	if n <= 0 {
		return
	}
	for i := range d.limits {
		if l := &d.limits[i]; l.limit == limit {
			l.tokens, l.requests = min(l.tokens+n, tokenbucket.MaxAmount), l.requests+limiter.Milli
			return
		}
	}
	d.limits = append(d.limits, limitDemand{limit: limit, tokens: n, requests: limiter.Milli})
}

// span is the time that what is counted came in, in ms. Beyond the first moments it is
// the whole memory.
func (d *demand) span() int64 {
	return min(max(d.at.Sub(d.began).Milliseconds(), shortestSpan), demandMemory)
}

// rate returns how much comes in a time of what is counted as n.
func (d *demand) rate(n int64, in time.Duration) int64 {
	return scaled(n, in.Milliseconds(), d.span())
}

// quota is how much of a limit a lease should have.
type quota struct {
	limit string
	most  int64 // for all of the time that the lease is for
	least int64 // what one request takes; with less the lease serves none
	soon  int64 // with less left more is asked for
}

// mean returns what one request asks for, rounded up: a lease of less would serve none.
func (l *limitDemand) mean() int64 {
	n := scaled(l.tokens, limiter.Milli, l.requests)
	if scaled(n, l.requests, limiter.Milli) < l.tokens {
		n++
	}
	return n
}

// quotas returns what a lease should have, and the time that this is for; none when the
// demand is not worth one, or a limit's bound is below what one request takes.
func (d *demand) quotas(now time.Time, p limiter.LeasePolicy) ([]quota, time.Duration) {
	d.fade(now)
	if d.requests < leastRequests*limiter.Milli {
		return nil, 0
	}
	span := p.For
	if span == 0 {
		span = d.spanOf(leaseRequests)
	}
	if d.rate(d.requests, span) < leastRequests*limiter.Milli {
		return nil, 0
	}
	quotas := make([]quota, 0, len(d.limits))
	for i := range d.limits {
		l := &d.limits[i]
		if l.requests == 0 || l.tokens == 0 {
			continue
		}
		q := quota{limit: l.limit, most: d.rate(l.tokens, span), least: l.mean(), soon: d.rate(l.tokens, soon)}
		if p.Max > 0 {
			q.most = min(q.most, p.Max)
		}
		if q.most < q.least {
			return nil, 0
		}
		quotas = append(quotas, q)
	}
	return quotas, span
}

// spanOf returns the time in which n requests come, within the bounds of what a lease
// is for.
func (d *demand) spanOf(n int64) time.Duration {
	ms := scaled(n*limiter.Milli, d.span(), max(d.requests, 1))
	return min(max(time.Duration(ms)*time.Millisecond, hotFor), limiter.MaxLeaseFor)
}

// hot reports whether several requests come within a time.
func (d *demand) hot(now time.Time, within time.Duration) bool {
	d.fade(now)
	return d.rate(d.requests, within) >= leastRequests*limiter.Milli
}
