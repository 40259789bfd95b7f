package lane

import "github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"

// departure is the work that a lane leaves to the shard that stands for its own.
type departure struct {
	requests []*Request
	to       *Site
	index    int
	task     task
}

// leave empties the lane of a shard that is gone.
func (l *Lane) leave() *departure {
	d := &departure{requests: l.queue, to: &l.site, index: schema.Heir(l.index), task: task{TaskKind: absorb, index: l.index, found: l.view.state}}
	l.queue, l.keeper.tasks = nil, tasks{}
	l.lease.leave()
	l.view = view{now: l.view.now, clock: l.view.clock} // it may be made again
	for _, r := range d.requests {                      // rule: requests of a shard that is no more keep nothing of its lease
		l.lease.release(r, false)
	}
	return d
}
