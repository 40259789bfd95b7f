package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// join makes one state of the report of this process and those of others. A replica that has stopped, or has not been
// seen, is not shown. Its decisions and events still count.
func join(now time.Time, here *report, others []report) *api.Fleet {
	end, complete := stepOf(now), stepOf(now)
	windows, replicas := make([]window, 0, 1+len(others)), make([]api.Replica, 0, 1+len(others))
	windows, replicas = append(windows, here.series), append(replicas, here.replica)
	events := here.events
	for i := range others {
		other := &others[i]
		windows, events = append(windows, other.series), append(events, other.events...)
		if other.isLive(now) {
			replicas = append(replicas, other.replica)
			complete = min(complete, other.series.end())
		}
	}
	slices.SortStableFunc(replicas[1:], func(a, b api.Replica) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	slices.SortStableFunc(events, func(a, b api.Event) int { return b.Time.Compare(a.Time) })
	sum := sumOf(end, windows)
	return &api.Fleet{
		Time: now.UTC(), StepSeconds: int(Step / time.Second), Begin: stepTime(sum.first), Complete: stepTime(max(complete, sum.first)),
		Results: sum.results, Replicas: replicas, Events: events[:min(len(events), maxEvents)],
	}
}
