package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// taking is one call that took or gave back, somewhere from one time to another,
// both in milliseconds after the epoch.
type taking struct {
	from, to int64
	taken    int64 // millitokens admitted
	refunded int64 // millitokens given back
}

// history collects what concurrent callers did.
type history struct {
	mu      sync.Mutex
	decided []taking // at the time at which the store decided
	called  []taking // from the call to its return, by the clock of the case
	denied  atomic.Int64
}

func (h *history) add(decided, called taking) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.decided, h.called = append(h.decided, decided), append(h.called, called)
}

// rate is a bound on what may be admitted: burst millitokens at once, and amount
// of them in each period.
type rate struct{ burst, amount, period int64 }

func rateOf(l limiter.Limit) rate {
	p := l.Params()
	return rate{p.Capacity, p.Amount, p.Period}
}

// check reports the first interval in which more was admitted than the rate and
// late milliseconds more of it allow. It looks at every interval that begins
// with one taking and ends with another; what certainly lies within counts as
// taken, what possibly does as refunded.
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

// clock is the clock of a case. Callers move it on as they go.
type clock struct{ ms atomic.Int64 }

// read moves the clock on by up to step-1 ms and returns it.
func (c *clock) read(r *rand.Rand, step int64) int64 { return c.ms.Add(r.Int64N(step)) }

// unsteady returns a reading of the clock as a caller has it who is off by up to
// jitter ms either way, and who, one time in four, was suspended after he read it.
func (c *clock) unsteady(r *rand.Rand, step, jitter int64) int64 {
	now := c.read(r, step) + r.Int64N(2*jitter+1) - jitter
	if r.IntN(4) == 0 {
		runtime.Gosched()
		now -= r.Int64N(jitter + 1)
	}
	return now
}
