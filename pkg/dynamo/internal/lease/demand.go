package lease

import "math"

const (
	demandMemory = 100.0 // ms after which a request counts for 1/e
	foldEvery    = 10    // ms
	shortestAge  = 5.0   // ms that the first requests are taken to have come in
	forgetAfter  = 1000  // ms without a request after which the demand is a new one
	leastAsked   = 4     // requests of a demand that is worth a lease
)

// Demand is what callers ask of a bucket, admitted or not: an average that forgets with
// the time. The zero Demand is ready once its limits are set by [newDemand].
//
// It is an estimate in floating point, for the shares alone: no balance is reckoned with it.
type Demand struct {
	began int64     // time of the first request
	last  int64     // of the last one
	at    int64     // up to which sums are faded
	asked int       // requests since began, at most leastAsked
	sums  []average // by limit, and the requests at the end
}

// average is a sum that fades, and what came since it was last faded.
type average struct {
	sum   float64
	added int64
}

// newDemand returns the demand on a bucket with a number of limits.
func newDemand(limits int) Demand {
	return Demand{sums: make([]average, limits+1)}
}

// count counts an operation.
func (d *Demand) count(now int64, draws []Draw) {
	if d.asked == 0 || now-d.last > forgetAfter {
		clear(d.sums)
		d.began, d.at, d.asked = now, now, 0
	}
	if now-d.at >= foldEvery {
		d.fold(now)
	}
	d.last, d.asked = max(d.last, now), min(d.asked+1, leastAsked)
	d.sums[len(d.sums)-1].added++
	for _, draw := range draws {
		a := &d.sums[draw.Limit]
		a.added += min(draw.Take, math.MaxInt64-a.added)
	}
}

// fold fades the sums up to a time.
func (d *Demand) fold(now int64) {
	half := halfFade(now - d.at)
	for i := range d.sums {
		a := &d.sums[i]
		a.sum, a.added = a.faded(half), 0
	}
	d.at = now
}

// halfFade returns by how much half of a time fades a sum.
func halfFade(ms int64) float64 { return math.Exp(-float64(ms) / 2 / demandMemory) }

// faded returns the sum after a time; what was added came in the middle of it.
func (a *average) faded(half float64) float64 { return (a.sum*half + float64(a.added)) * half }

// rate returns the millitokens of a limit that are asked for in one ms.
func (d *Demand) rate(limit int, now int64) float64 { return d.of(limit, now) }

// requests returns the requests in one ms.
func (d *Demand) requests(now int64) float64 { return d.of(len(d.sums)-1, now) }

func (d *Demand) of(i int, now int64) float64 {
	if d.asked == 0 {
		return 0
	}
	sum := d.sums[i].faded(halfFade(max(now-d.at, 0)))
	age := max(float64(now-d.began), shortestAge)
	return sum / (demandMemory * (1 - math.Exp(-age/demandMemory)))
}
