package lane

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Lane is the way of all requests of this process for one item. All that follows mu is
// guarded by it. A decision changes that alone: see [Lanes.unlock] for its effects.
//
// Its state is in parts, each of which owns its fields. Its duties are types of their own. Each of
// them has the parts that it uses, and no others.
type Lane struct {
	item

	order uint64       // in which the locks of several lanes are taken
	holds atomic.Int32 // callers that are about to use it

	mu sync.Mutex
	requests
	traffic
	wakes

	view  view
	held  held
	turns turns
	used  time.Time // when it last had work

	lease     leasing   // the lease, as all that follows sees it
	estimator estimator // the tokens that the lane may count on
	closer    closer    // the ends of requests
	finder    finder    // owns the writes that may be applied though a copy was refused
	sender    sender    // messages, up to their replies
	writer    writer    // the writes of requests
	turner    turner    // turns among replicas
	keeper    keeper    // owns the maintenance tasks
	planner   planner   // the group of the next write
	usages    usages    // consumption from the lease that no lease write counts
	lessee    lessee    // the lease: serves requests, and plans its writes
}

func newLane(s *host, holding *set[*Lane], site *Site, index int, key schema.Key, order uint64) *Lane {
	l := &Lane{item: item{host: s, site: *site, key: key, index: index, crowd: s.crowdOf(key)}, order: order, view: view{now: schema.MinTime}}
	l.share(&l.lessee)
	i, v, h, q, t, w := &l.item, &l.view, &l.held, &l.requests, &l.traffic, &l.wakes
	l.usages = usages{i, q, w, v, h}
	l.lessee = lessee{i, q, t, w, v, h, divider{i, q, v, h, &l.estimator}, &l.closer, &l.sender, &l.turner, &l.usages, &l.keeper, listing{i, h, func(in bool) { holding.put(l, in) }}}
	l.held.sequence = uint16(s.cfg.Loop.Draw(1 << 16)) // #nosec G115 -- in range
	return l
}

// share gives all duties but those for the lease the parts that they use.
func (l *Lane) share(lease leasing) {
	i, v, q, t, w := &l.item, &l.view, &l.requests, &l.traffic, &l.wakes
	l.lease = lease
	l.estimator = estimator{i, q, t, v}
	l.closer = closer{i, q, t, w, v, lease}
	l.finder = finder{requests: q, twice: &l.host.Counters.LostTwice, closer: &l.closer, lane: l}
	l.sender = sender{i, t, w, v, &l.closer, lease, l}
	l.writer = writer{i, q, t, v, &l.turns, &l.finder, &l.closer, &l.sender}
	l.turner = turner{i, t, v, &l.turns, &l.sender}
	l.keeper = keeper{item: i, traffic: t, wakes: w, view: v, lease: lease, turns: &l.turns, sender: &l.sender, turner: &l.turner}
	l.planner = planner{i, q, t, v, &l.estimator, &l.closer, lease, &l.turner}
}

// laneOf returns the lane that a request is in; nil = it was in none.
func laneOf(r *Request) *Lane {
	l, _ := r.lane.Load().(*Lane)
	return l
}

// idle returns when the lane last had work, and whether it has none.
func (l *Lane) idle() (used time.Time, idle bool) {
	if l.holds.Load() > 0 {
		return time.Time{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used, !l.running && len(l.queue)+len(l.later)+len(l.out)+len(l.keeper.tasks.todo) == 0 && !l.held.listed
}

// consult brings the lane's reading of the clock up to date. Newer limits that waited for a corrected clock without
// a call come at the time that it is.
func (l *Lane) consult(now time.Time) {
	l.view.clock = l.host.reading()
	if l.view.looks == 0 || l.view.clock.Doubtful {
		return
	}
	l.view.looks = 0
	if len(l.queue) == 0 {
		l.view.advance(l.host.cfg.Clock.Correct(now).UnixMilli())
	}
}

// leased reports whether the lane has a lease, for its turn.
func (l *Lane) leased() bool { return l.held.listed }
