package fleetsim_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// tally compares the takes from a limit with its capacity and rate in every span of
// time at once. A call counts for the spans in which all of it lies. A refund counts
// for all spans in which it can have been applied. So no choice of moments could
// excuse an excess that is found.
//
// For each moment s at which a call began it has the net takes since, and the refill
// of the limit up to s. The greatest sum of them bounds the balance now, which is
// below the capacity and the refill up to now. A limit with an extra at s had it above
// the capacity. The items show it. That it was given is for moments before it.
type tally struct {
	rate, capacity int64 // scaled
	spread         int64 // ticks, between the clocks
	offset         int64 // that all sums have besides
	old            int64 // the greatest sum of moments before all calls that are under way
	recent         []moment
	best           int64 // the greatest of all
	open           []*openCall
	given          int64 // by calls that may still be applied
}

// moment is a moment at which a call began, and the sum since.
type moment struct{ at, sum int64 }

// openCall is a call from its beginning to its answer.
type openCall struct {
	from int64
	over bool
}

const (
	// tallyTick is the unit of time of a tally.
	tallyTick = int64(100 * time.Microsecond)
	// tallyScale makes whole numbers of the refill of the limits in a tick: each of
	// them has a period that is a part of it, in ticks.
	tallyScale = int64(time.Minute) / tallyTick

	noSum = -1 << 62
)

func newTally(spread int64) *tally {
	const granularity = int64(time.Millisecond) / tallyTick // of the times that limits refill by
	return &tally{old: noSum, best: noSum, spread: (spread+tallyTick-1)/tallyTick + granularity}
}

// lags has the clocks be further apart.
func (y *tally) lags(by int64) { y.spread += by/tallyTick + 1 }

// under has a limit be another one from now on: of all that it was, the greatest counts.
func (y *tally) under(p tokenbucket.Params) {
	perMinute := int64(time.Minute/time.Millisecond) / p.Period
	y.rate = max(y.rate, p.Amount*perMinute)
	y.capacity = max(y.capacity, p.Capacity)
}

// begin records that a call begins, beside an extra of some millitokens.
func (y *tally) begin(now, extra int64) *openCall {
	c := &openCall{from: now / tallyTick}
	y.open = append(y.open, c)
	sum := c.from*y.rate - y.given - y.offset - extra*tallyScale
	if n := len(y.recent); n > 0 && y.recent[n-1].at == c.from {
		y.recent[n-1].sum = max(y.recent[n-1].sum, sum)
	} else {
		y.recent = append(y.recent, moment{c.from, sum})
	}
	y.best = max(y.best, sum)
	return c
}

// gives records that a call begins that gives back n millitokens.
func (y *tally) gives(n int64) {
	y.offset -= n * tallyScale
	y.given += n * tallyScale
}

// gave records that it is over, and was applied if it was at all.
func (y *tally) gave(n int64) { y.given -= n * tallyScale }

// end records that a call took n millitokens, and is over.
func (y *tally) end(c *openCall, n int64) {
	c.over = true
	if last := y.recent[len(y.recent)-1].at; last <= c.from {
		y.offset += n * tallyScale
	} else if n > 0 {
		y.old += n * tallyScale
		for i := range y.recent {
			if y.recent[i].at <= c.from {
				y.recent[i].sum += n * tallyScale
			}
		}
		y.reckon()
	}
	y.forget()
}

func (y *tally) reckon() {
	y.best = y.old
	for i := range y.recent {
		y.best = max(y.best, y.recent[i].sum)
	}
}

// forget makes one of the moments that have the same calls before them from now on.
func (y *tally) forget() {
	done := 0
	for done < len(y.open) && y.open[done].over {
		done++
	}
	y.open = y.open[done:]
	first := len(y.recent) - 1 // the last one is for calls to come at the same moment
	if len(y.open) > 0 {
		first = min(first, slices.IndexFunc(y.recent, func(m moment) bool { return m.at >= y.open[0].from }))
	}
	if first <= 0 {
		return
	}
	for _, m := range y.recent[:first] {
		y.old = max(y.old, m.sum)
	}
	y.recent = y.recent[first:]
}

// check returns the fault when there are n millitokens more that could be taken now.
func (y *tally) check(now, n int64) error {
	if y.best <= noSum/2 {
		return nil
	}
	ticks := (now + tallyTick - 1) / tallyTick
	over := y.best + y.offset + n*tallyScale - y.rate*(ticks+y.spread) - y.capacity*tallyScale
	if over > 0 {
		since := ""
		for _, m := range y.recent {
			if m.sum == y.best {
				since = fmt.Sprintf(" since %v", time.Duration(m.at*tallyTick))
			}
		}
		return fmt.Errorf("%d millitokens too many%s, of %d and %d a minute", (over+tallyScale-1)/tallyScale, since, y.capacity, y.rate)
	}
	return nil
}
