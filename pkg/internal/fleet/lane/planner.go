package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// planner makes the group of the next write.
type planner struct {
	*item
	*requests
	*traffic

	view      *view
	estimator *estimator
	closer    *closer
	lease     leasing
	turner    *turner
}

// options returns how commuting writes are made.
func (l *planner) options(now time.Time) plan.Options {
	o := plan.Options{Doubtful: l.view.clock.Doubtful, Scripts: l.host.cfg.Scripts}
	if o.Scripts || l.replicas(now) == 1 {
		return o // no form depends on a balance, or the lane has the content of its own other writes
	}
	lift := max(leastLift, liftTrips*l.pace.RoundTrip())
	o.Lift = lift.Milliseconds()
	if full := l.shortest(); full > 0 {
		o.Lift = min(o.Lift, full/liftPart)
	}
	if o.Lift > 0 {
		o.Guard = l.guard(o.Lift, now)
	}
	return o
}

// guard returns how long before a limit is full the lane lifts it. One lift refuses the others
// that are under way: so one replica lifts early, and the others where it did not.
func (l *planner) guard(lift int64, now time.Time) int64 {
	if l.peers.First(l.host.self.replica(), now) {
		return lift * 4 / 5
	}
	return lift/5 + l.host.cfg.Loop.Draw(max(lift/5, 1))
}

const (
	// leastLift is how far a limit is lifted at least, beside other replicas.
	leastLift = 20 * time.Millisecond
	// liftTrips is the same in round trips, where that is longer.
	liftTrips = 5
	// liftPart bounds a lift: it costs at most one part in that many of the capacity.
	liftPart = 20
)

// shortest returns the least time in ms in which a limit of the item is refilled whole.
func (l *planner) shortest() int64 {
	least := int64(0)
	if l.view.state == nil {
		return 0
	}
	for i := range l.view.state.Balances {
		if full := (tokenbucket.Bucket{}).TimeToFull(l.view.state.Balances[i].Share, 0); least == 0 || full < least {
			least = full
		}
	}
	return least
}
