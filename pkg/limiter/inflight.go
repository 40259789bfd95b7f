package limiter

import (
	"strconv"
	"time"
)

// The bucket of a limit in flight is that of a window of four quarters. Each quarter is as long as the longest time
// of a request, and has a limit of its own in the bucket. A request takes from the present quarter and from the next
// one, and its end gives both back. So it counts for one quarter at least and for two at most, and mostly takes from
// one bucket: the quarter after the last one is in the bucket of the next window.

// quarters is how many quarters a window of a limit in flight has.
const quarters = 4

// quarterDot is between the name of a limit in flight and the number of the quarter, 1 to 4.
const quarterDot = "."

// ofQuarter returns the limit of a quarter, 0 to 3.
func (l Limit) ofQuarter(quarter int) Limit {
	l.Name += quarterDot + strconv.Itoa(quarter+1)
	return l
}

// inBucket returns the limits that a bucket has for a limit: those of the quarters of one in flight, else the limit.
func (l Limit) inBucket() []Limit {
	if !l.IsInFlight() {
		return []Limit{l}
	}
	all := make([]Limit, quarters)
	for i := range all {
		all[i] = l.ofQuarter(i)
	}
	return all
}

// InFlight reports whether the window is of a limit in flight.
func (w Window) InFlight() bool { return w.Calendar&inFlightWindow != 0 }

// MaxTime returns the longest time of a request, of a window of a limit in flight.
func (w Window) MaxTime() time.Duration {
	return time.Duration(w.End-w.Start) * time.Second / quarters
}

// next returns the window after one of a limit in flight.
func (w Window) next() Window { return Window{w.End, 2*w.End - w.Start, w.Calendar} }

// quarter returns the quarter with a time, 0 to 3, of a window of a limit in flight. It is the nearest one for
// another time. A caller may name a window that has no time.
func (w Window) quarter(now time.Time) int {
	return int(min(max((now.Unix()-w.Start)*quarters/max(w.End-w.Start, 1), 0), quarters-1))
}

// FullAt returns the time from which a bucket without requests is full because of its window. Requests in flight
// count until the next quarter is over.
func (w Window) FullAt(now time.Time) time.Time {
	end := w.End
	if w.InFlight() {
		end = w.Start + int64(w.quarter(now)+2)*int64(w.MaxTime()/time.Second)
	}
	return time.Unix(end, 0).UTC()
}
