package storetest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// taking is one call that took or refunded, at some time between two times, both in milliseconds
// after the epoch.
type taking struct {
	from, to int64
	taken    int64 // millitokens admitted
	refunded int64 // millitokens refunded
	began    int64 // number of the call's begin among all begins and ends of calls; 0 = not counted
	ended    int64 // number of its end
}

// history collects the effects of concurrent callers.
type history struct {
	mu      sync.Mutex
	decided []taking // at the time of the store's decision
	called  []taking // from the call to its return, by the clock of the case
	denied  atomic.Int64
	order   atomic.Int64 // begins and ends of calls so far
}

// next numbers the begin or the end of a call.
func (h *history) next() int64 { return h.order.Add(1) }

func (h *history) add(decided, called taking) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.decided, h.called = append(h.decided, decided), append(h.called, called)
}

// landed returns the decided calls with the times at which each may have taken effect. A take has one.
// A refund may land at any time from its decision to its end: until the first decision of a call that
// began after it.
func (h *history) landed() []taking {
	all := slices.Clone(h.decided)
	last := int64(math.MinInt64)
	for _, d := range all {
		last = max(last, d.to)
	}
	for i := range all {
		r := &all[i]
		if r.refunded == 0 {
			continue
		}
		r.to = last
		for _, later := range h.decided {
			if later.began > r.ended {
				r.to = min(r.to, later.from)
			}
		}
	}
	return all
}

// rate is a bound on admissions: burst millitokens at once, and amount of them in each period.
type rate struct{ burst, amount, period int64 }

func rateOf(l limiter.Limit) rate {
	p := l.Params()
	return rate{p.Capacity, p.Amount, p.Period}
}

// check reports the first interval in which more was admitted than the rate and late extra
// milliseconds allow. It checks every interval that begins with one taking and ends with another.
// Takes count if they are certainly inside, refunds if they are possibly inside.
func (r rate) check(all []taking, late int64) error {
	ends := slices.Clone(all)
	slices.SortFunc(ends, func(a, b taking) int { return cmp.Compare(a.to, b.to) })
	begins := make(map[int64]bool)
	across := make([]int64, len(ends)) // refunded by calls that were under way at the end
	for i, e := range ends {
		begins[e.from] = true
		for _, later := range ends[i+1:] {
			if later.refunded > 0 && later.from <= e.to {
				across[i] += later.refunded
			}
		}
	}
	for begin := range begins {
		var sum int64
		for i, e := range ends {
			if e.from >= begin {
				sum += e.taken
			}
			if e.to >= begin {
				sum -= e.refunded
			}
			if i+1 < len(ends) && ends[i+1].to == e.to || e.to < begin {
				continue
			}
			if most := r.burst + r.amount*(e.to-begin+late)/r.period; sum-across[i] > most {
				return fmt.Errorf("from %d ms to %d ms %d millitokens were admitted, %d may be", begin, e.to, sum-across[i], most)
			}
		}
	}
	return nil
}

// clock is the clock of a case. Callers advance it.
type clock struct{ ms atomic.Int64 }

// read advances the clock by up to step-1 ms and returns it.
func (c *clock) read(r *rand.Rand, step int64) int64 { return c.ms.Add(r.Int64N(step)) }

// unsteady returns the clock as read by an unsteady caller. Its clock is off by up to jitter ms
// either way, and one time in four it was suspended after the read.
func (c *clock) unsteady(r *rand.Rand, step, jitter int64) int64 {
	now := c.read(r, step) + r.Int64N(2*jitter+1) - jitter
	if r.IntN(4) == 0 {
		runtime.Gosched()
		now -= r.Int64N(jitter + 1)
	}
	return now
}
