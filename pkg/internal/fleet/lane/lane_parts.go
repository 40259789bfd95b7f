package lane

import (
	"iter"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// item is the item of a lane, and the process that the lane is of. It does not change.
type item struct {
	host  *host
	site  Site
	key   schema.Key
	index int
	crowd *crowding // of the lanes of the same part of the server
}

// requests are those of a lane.
type requests struct {
	queue []*Request  // requests that wait, in order of arrival
	later []*Request  // owed requests that were not applied: they wait for capacity
	owed  []*Request  // to be entered when the lane is unlocked: each is written until it is applied
	fresh [8]*Request // the last owed requests that came into the queue, the newest first, while they are in no write
	newer wanted
}

// remove takes a request out of the queue. The lane is locked. Mostly it is the first one, whose deadline comes first.
func (l *requests) remove(r *Request) {
	if len(l.queue) > 0 && l.queue[0] == r {
		l.queue = l.queue[1:]
		return
	}
	for i, other := range l.queue {
		if other == r {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			return
		}
	}
}

// owe has the lane write something until it is applied; nil = nothing. It enters the queue when
// the lane is unlocked.
func (l *requests) owe(of *Request, what *plan.Request) {
	if what != nil {
		l.owed = append(l.owed, of.owed(what))
	}
}

// oweFor is owe in the place of a request that was decided late.
func (l *requests) oweFor(r *Request, what, told *plan.Request) {
	if what == nil {
		return
	}
	l.owe(r, what)
	o := l.owed[len(l.owed)-1]
	o.late = what.Forces() && !told.Books()
	if r.strayed {
		r.rest, o.apart = &rest{o, told}, true
	}
}

// drop takes an owed request out of the lane, wherever it waits.
func (l *requests) drop(r *Request) {
	is := func(o *Request) bool { return o == r }
	l.queue, l.later, l.owed = slices.DeleteFunc(l.queue, is), slices.DeleteFunc(l.later, is), slices.DeleteFunc(l.owed, is)
}

// joinTime is how long an owed request is joined by others. So each is tried again for about as long as it is to be.
const joinTime = 100 * time.Millisecond

// written notes that a write books a request: no other one joins it from now on.
func (l *requests) written(r *Request) {
	for i, o := range l.fresh {
		if o == r {
			l.fresh[i] = nil // rule: no request joins one that a write may have booked
		}
	}
}

// join adds an owed request to one of the last that came before it, and reports whether it did. So a lane has few requests
// to go through at each step, however many calls it admits late while its item is not written to.
func (l *requests) join(r *Request, now time.Time) bool {
	for _, o := range l.fresh {
		if o != nil && o.lane.Load() == r.lane.Load() && o.state == owed && o.part == nil && o.late == r.late && now.Sub(o.entered) < joinTime && o.Join(r.Request) { // another lane guards the state of its own
			return true
		}
	}
	return false
}

// freshen has owed requests that come next join this one too, in the place of the oldest one.
func (l *requests) freshen(r *Request) {
	copy(l.fresh[1:], l.fresh[:len(l.fresh)-1])
	l.fresh[0] = r
}

// traffic is the messages of a lane, and the replicas that it meets.
type traffic struct {
	out      []message // messages under way, in order of sending
	pace     Pace
	peers    Peers
	channels channels
	unpaid   int64  // write units of refused writes that the item has not counted
	events   uint64 // arrivals and sendings so far
}

// blocked reports whether a message is under way that nothing may be planned before.
func (l *traffic) blocked() bool {
	return slices.ContainsFunc(l.out, message.alone)
}

// batches are the writes of requests under way, in order of sending.
func (l *traffic) batches() iter.Seq[*batch] {
	return func(yield func(*batch) bool) {
		for _, m := range l.out {
			if b := m.carries(); b != nil && !yield(b) {
				return
			}
		}
	}
}

// oldest returns the first of them; nil where that message is of another kind, or none is under way.
func (l *traffic) oldest() *batch {
	if len(l.out) == 0 {
		return nil
	}
	return l.out[0].carries()
}

// replicas returns how many replicas use the item, this one included.
func (l *traffic) replicas(now time.Time) int {
	others, _ := l.peers.Count(now)
	return 1 + others
}

// writers returns how many replicas certainly write to the item, this one included.
func (l *traffic) writers(now time.Time) int {
	_, active := l.peers.Count(now)
	return 1 + active
}

// unleased reports whether a replica wrote to the item lately that has no lease in a state of it.
func (l *traffic) unleased(state *schema.Bucket, now time.Time) bool {
	return state != nil && l.peers.Any(now, func(replica uint32) bool { return !state.Lease(replica).Holds() })
}

// wakes say when a lane is to be stepped.
type wakes struct {
	running bool      // a runner is about to step
	starts  bool      // a runner is to be started
	rings   bool      // a timer is to be started
	timer   time.Time // the first wake; zero = none
}

// start has a goroutine step the lane, unless one is about to.
func (l *wakes) start() {
	if !l.running {
		l.running, l.starts = true, true
	}
}

// wake has the lane stepped at a time, if that is not due before.
func (l *wakes) wake(at time.Time) {
	if l.timer.IsZero() || at.Before(l.timer) {
		l.timer, l.rings = at, true
	}
}
