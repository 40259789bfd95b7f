package lane

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// Freshness is how old a state may be that a request is denied by: tokens that other
// replicas gave back can be missed for so long.
const Freshness = 100 * time.Millisecond

// Lane is the way of all requests of this process for one item. All that follows mu is
// guarded by it.
type Lane struct {
	host  *Lanes
	site  Site
	key   schema.Key
	index int
	order uint64       // in which the locks of several lanes are taken
	holds atomic.Int32 // callers that are about to use it

	// Its duties, see below.
	sender    sender
	closer    closer
	lessee    lessee
	keeper    keeper
	planner   planner
	estimator estimator

	mu      sync.Mutex
	queue   []*Request // what waits, in order of arrival
	later   []*Request // what is owed and was not applied: it waits for capacity
	view    view
	out     []*flight // messages under way, in order of sending
	pace    pace
	peers   peers
	olds    olds
	held    held
	tasks   tasks
	unpaid  int64     // write units of refused writes that the item has not counted
	events  uint64    // arrivals and sendings so far
	running bool      // a runner is about to step
	timer   time.Time // the first wake; zero = none
	used    time.Time // when it last had work
}

// The duties of a lane are types of their own on the same state. The lane is locked
// wherever they are used, save in [sender.fly].
type (
	sender    struct{ *Lane } // sends messages, and takes in their ends
	closer    struct{ *Lane } // ends requests, or has them written later
	lessee    struct{ *Lane } // holds the lease
	keeper    struct{ *Lane } // does maintenance tasks
	planner   struct{ *Lane } // makes the group of the next write
	estimator struct{ *Lane } // tells what the lane may believe in
)

func newLane(s *Lanes, site *Site, index int, key schema.Key) *Lane {
	l := &Lane{host: s, site: *site, key: key, index: index, order: s.table.created.Add(1), view: view{now: schema.MinTime}}
	l.sender, l.closer, l.lessee = sender{l}, closer{l}, lessee{l}
	l.keeper, l.planner, l.estimator = keeper{l}, planner{l}, estimator{l}
	l.held.sequence = uint16(s.cfg.Loop.Draw(1 << 16)) // #nosec G115 -- in range
	return l
}

// idle returns when the lane last had work, and whether it has none.
func (l *Lane) idle() (used time.Time, idle bool) {
	if l.holds.Load() > 0 {
		return time.Time{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used, !l.running && len(l.queue)+len(l.later)+len(l.out)+len(l.tasks.todo) == 0 && !l.held.holds()
}

// Send hands a request to the lane of its shard, which decides it at once, or later.
func (s *Lanes) Send(r *Request) {
	l := s.hold(r.Site, r.Index)
	defer l.holds.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(r, s.cfg.Now())
}

// enter puts a request into the queue. The lane is locked.
func (l *Lane) enter(r *Request, now time.Time) {
	l.events++
	r.asked, r.phase, r.entered, r.expires, l.used = l.events, queued, now, now.Add(l.host.cfg.Budget), now
	r.lane.Store(l)
	if r.claim == detached && !r.owing {
		l.host.owe(r)
	}
	l.consult()
	l.view.advance(r.At)
	l.view.moved = now
	if waits, done := l.lessee.serve(r, now); done {
		l.check()
		return
	} else if waits {
		defer l.check()
	} else if l.closer.turnAway(r, now) {
		return
	}
	l.queue = append(l.queue, r)
	if r.claim == awaited && len(l.out) > 0 && l.host.silent(now) {
		l.queue = l.queue[:len(l.queue)-1]
		l.closer.fail(r, errSilent, now)
		return
	}
	l.start()
}

// check has the lane stepped if something is due for its lease.
func (l *Lane) check() {
	if h := l.held.holder; h != nil && h.Due(l.view.now) {
		l.start()
	}
}

// start has a goroutine step the lane, unless one is about to. The lane is locked.
func (l *Lane) start() {
	if l.running {
		return
	}
	l.running = true
	l.host.work.add()
	l.host.cfg.Loop.Start(func() {
		defer l.host.work.done()
		l.gather()
		l.pump()
	})
}

// gather lets goroutines run that are ready to, as long as they bring requests: of
// callers that were answered together most ask again at once, and go into one write
// instead of two. Nothing is waited for.
func (l *Lane) gather() {
	const most = 16
	for n, before := 0, -1; n < most; n++ {
		l.mu.Lock()
		now := len(l.queue)
		l.mu.Unlock()
		if now == before {
			return
		}
		before = now
		l.host.cfg.Loop.Yield()
	}
}

// pump steps the lane, and sends what the step says, until there is nothing to send.
func (l *Lane) pump() {
	for {
		l.mu.Lock()
		f, left := l.step(l.host.cfg.Now())
		l.mu.Unlock()
		l.host.forward(l, left)
		if f == nil {
			return
		}
		l.sender.fly(f)
		l.gather()
	}
}

// wake has the lane stepped at a time. The lane is locked.
func (l *Lane) wake(at time.Time) {
	if !l.timer.IsZero() && !at.Before(l.timer) {
		return
	}
	l.timer = at
	s := l.host
	s.timers.add()
	s.cfg.Loop.Start(func() {
		defer s.timers.done()
		if s.cfg.Loop.Sleep(s.stopped, max(at.Sub(s.cfg.Now()), 0)) != nil {
			return
		}
		l.mu.Lock()
		due := l.timer.Equal(at)
		if due {
			l.timer = time.Time{}
		}
		l.mu.Unlock()
		if due { // else an earlier one took its place
			l.pump()
		}
	})
}

// remove takes a request out of what waits. The lane is locked.
func (l *Lane) remove(r *Request) {
	for i, other := range l.queue {
		if other == r {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			return
		}
	}
}

// owe counts a request that the lanes owe.
func (s *Lanes) owe(r *Request) {
	r.owing = true
	s.work.add()
	s.Counters.Owed.Add(1)
}

// owe has the lane write something until it is applied. The lane is locked.
func (l closer) owe(of *Request, what *plan.Request, now time.Time) {
	if what != nil {
		l.enter(of.owed(what), now)
	}
}
