package lane

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/lane/internal/pacing"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// Lane is the way of all requests of this process for one item. All that follows mu is
// guarded by it. A decision changes that alone: see [Lanes.unlock] for its effects.
type Lane struct {
	host    *host
	holding *set[*Lane] // the lanes of the process that hold something on lease
	site    Site
	key     schema.Key
	index   int
	order   uint64       // in which the locks of several lanes are taken
	holds   atomic.Int32 // callers that are about to use it

	// Its duties, see below.
	sender    sender
	closer    closer
	finder    finder
	lessee    lessee
	divider   divider
	keeper    keeper
	planner   planner
	estimator estimator

	mu    sync.Mutex
	queue []*Request // requests that wait, in order of arrival
	later []*Request // owed requests that were not applied: they wait for capacity
	view  view
	out   []*flight // messages under way, in order of sending
	pace  pacing.Pace
	peers pacing.Peers
	turns turns
	newer wanted

	channels channels
	held     held
	tasks    tasks
	strays   []stray
	unpaid   int64     // write units of refused writes that the item has not counted
	events   uint64    // arrivals and sendings so far
	running  bool      // a runner is about to step
	timer    time.Time // the first wake; zero = none
	used     time.Time // when it last had work

	// The effects of the decisions since it was locked.
	owed   []*Request // to be entered: it is written until it is applied
	starts bool       // a runner is to be started
	rings  bool       // a timer is to be started
}

// The duties of a lane are types of their own on the same state. The lane is locked
// wherever they are used, save in [sender.exchange].
type (
	sender    struct{ *Lane } // makes messages, and takes in their ends
	finder    struct{ *Lane } // finds writes that were applied though a copy was refused
	closer    struct{ *Lane } // lets requests in, and ends them or has them written later
	lessee    struct{ *Lane } // holds the lease
	divider   struct{ *Lane } // divides a large request between the lease and the item
	keeper    struct{ *Lane } // does maintenance tasks
	planner   struct{ *Lane } // makes the group of the next write
	estimator struct{ *Lane } // estimates the tokens that the lane may count on
)

func newLane(s *host, holding *set[*Lane], site *Site, index int, key schema.Key, order uint64) *Lane {
	l := &Lane{host: s, holding: holding, site: *site, key: key, index: index, order: order, view: view{now: schema.MinTime}}
	l.sender, l.closer, l.finder = sender{l}, closer{l}, finder{l}
	l.lessee, l.divider = lessee{l}, divider{l}
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
	return l.used, !l.running && len(l.queue)+len(l.later)+len(l.out)+len(l.tasks.todo) == 0 && !l.held.listed
}

// remove takes a request out of the queue. The lane is locked.
func (l *Lane) remove(r *Request) {
	for i, other := range l.queue {
		if other == r {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			return
		}
	}
}

// owe has the lane write something until it is applied; nil = nothing. It enters the queue when
// the lane is unlocked.
func (l *Lane) owe(of *Request, what *plan.Request) {
	if what != nil {
		l.owed = append(l.owed, of.owed(what))
	}
}

// start has a goroutine step the lane, unless one is about to.
func (l *Lane) start() {
	if !l.running {
		l.running, l.starts = true, true
	}
}

// wake has the lane stepped at a time, if that is not due before.
func (l *Lane) wake(at time.Time) {
	if l.timer.IsZero() || at.Before(l.timer) {
		l.timer, l.rings = at, true
	}
}

// consult brings the lane's reading of the clock up to date.
func (l *Lane) consult() { l.view.clock = l.host.reading() }

// users returns how many replicas wrote to the item lately or had a lease, this one included.
func (l *Lane) users(now time.Time) int {
	n := l.replicas(now)
	for id := range l.held.watch.Users(l.host.clocks(now).Mono) {
		if !l.peers.Has(id, now) {
			n++
		}
	}
	return n
}

// replicas returns how many replicas use the item, this one included.
func (l *Lane) replicas(now time.Time) int {
	others, _ := l.peers.Count(now)
	return 1 + others
}
