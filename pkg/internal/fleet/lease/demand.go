package lease

import (
	"math"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

const (
	demandMemory = 100.0 // ms after which a request counts for 1/e
	foldEvery    = 10    // ms
	shortestAge  = 5.0   // ms that the first requests are taken to have come in
	forgetAfter  = 500   // ms without a request after which the demand is a new one
	slowMemory   = 1000.0
	leastAtOnce  = 2.0            // requests of the last moments that are worth a lease
	leastSteady  = 8.0            // requests of the last second that are
	leastAsked   = 3              // requests of a demand that is worth one, at least
	mostAsked    = 2 * leastAsked // that a demand is taken to be as the one before
	usual        = 16             // a greater request, in mean ones, counts as that many
)

// Demand is the demand of callers for a bucket, admitted or not: an average that decays
// with time. The zero Demand is ready once its limits are set by [newDemand].
//
// It is an estimate in floating point, for the shares alone: no balance is reckoned with it.
type Demand struct {
	began  int64     // time of the first request
	last   int64     // of the last one
	at     int64     // up to which sums are faded
	asked  int       // requests since began, at most mostAsked
	before []float64 // rates as they were when the demand before ended, if it was frequent; else 0
	sums   []average // by limit, and the requests at the end
	slow   average   // requests, over a longer time
}

// average is a sum that fades, and the amounts since it was last faded.
type average struct {
	sum   float64
	added int64
}

// newDemand returns the demand on a bucket with a number of limits.
func newDemand(limits int) Demand {
	return Demand{sums: make([]average, limits+1), before: make([]float64, limits+1)}
}

// count counts an operation.
func (d *Demand) count(now int64, draws []Draw) {
	if d.asked == 0 || now-d.last > forgetAfter {
		d.renew(now)
	}
	if now-d.at >= foldEvery {
		d.fold(now)
	}
	d.last, d.asked = max(d.last, now), min(d.asked+1, mostAsked)
	d.sums[len(d.sums)-1].added++
	d.slow.added++
	for _, draw := range draws {
		a := &d.sums[draw.Limit]
		a.added += min(draw.Take, d.most(draw.Limit), math.MaxInt64-a.added)
	}
}

// renew begins a new demand. One that was frequent is taken to come back as it was, until a
// few requests show the new one.
func (d *Demand) renew(now int64) {
	again := d.asked >= leastAsked && d.frequent(d.last)
	for i := range d.sums {
		rate := d.of(i, d.last)
		if d.before[i] = 0; again {
			d.before[i] = rate
		}
	}
	clear(d.sums)
	d.slow = average{}
	d.began, d.at, d.asked = now, now, 0
}

// most returns the most of a limit that one request counts as, so that a single large one does
// not hide the usual ones.
func (d *Demand) most(limit int) int64 {
	requests := d.sums[len(d.sums)-1].whole() - 1 // without this one
	if d.asked < leastAsked || requests <= 0 {
		return math.MaxInt64
	}
	mean := d.sums[limit].whole() / requests
	return max(millitokens(usual*mean, math.MaxInt64), tokenbucket.Milli)
}

// fold fades the sums up to a time.
func (d *Demand) fold(now int64) {
	half := halfFade(now-d.at, demandMemory)
	d.slow.sum, d.slow.added = d.slow.faded(halfFade(now-d.at, slowMemory)), 0
	for i := range d.sums {
		a := &d.sums[i]
		a.sum, a.added = a.faded(half), 0
	}
	d.at = now
}

// halfFade returns by how much half of a time fades a sum with a memory.
func halfFade(ms int64, memory float64) float64 { return math.Exp(-float64(max(ms, 0)) / 2 / memory) }

// faded returns the sum after a time. New requests count as of the middle of it.
func (a *average) faded(half float64) float64 { return (a.sum*half + float64(a.added)) * half }

// whole returns the sum as of when it was last faded.
func (a *average) whole() float64 { return a.sum + float64(a.added) }

// rate returns the millitokens of a limit that are asked for in one ms.
func (d *Demand) rate(limit int, now int64) float64 { return d.of(limit, now) }

// requests returns the requests in one ms.
func (d *Demand) requests(now int64) float64 { return d.of(len(d.sums)-1, now) }

// lately returns the requests that came, in one ms, without a demand that is taken to come back.
func (d *Demand) lately(now int64) float64 {
	return d.sums[len(d.sums)-1].faded(halfFade(now-d.at, demandMemory)) / demandMemory
}

func (d *Demand) of(i int, now int64) float64 {
	if d.asked == 0 {
		return 0
	}
	if d.asked < mostAsked && d.before[i] > 0 {
		return d.before[i]
	}
	sum := d.sums[i].faded(halfFade(now-d.at, demandMemory))
	age := max(float64(now-d.began), shortestAge)
	return sum / (demandMemory * (1 - math.Exp(-age/demandMemory)))
}

// frequent reports whether several requests came at once, or enough of them in the last
// second: a lease then costs fewer writes than it saves.
func (d *Demand) frequent(now int64) bool {
	if d.asked < leastAsked {
		return d.asked > 0 && d.before[len(d.before)-1] > 0
	}
	atOnce := d.sums[len(d.sums)-1].faded(halfFade(now-d.at, demandMemory))
	return atOnce >= leastAtOnce || d.slow.faded(halfFade(now-d.at, slowMemory)) >= leastSteady
}
