package main

import (
	"time"

	"github.com/ratelimit/ratelimit/internal/controlapi"
	"github.com/ratelimit/ratelimit/internal/topk"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// activity counts limits of entities by their denials and their use.
type activity struct {
	since           time.Time
	denied, busiest *topk.Counter
}

func newActivity(since time.Time) *activity {
	return &activity{since: since, denied: topk.New(), busiest: topk.New()}
}

// observe implements rls.Config.Observe.
func (a *activity) observe(now time.Time, o rls.Observation) {
	counter := a.busiest
	if o.Denied {
		counter = a.denied
	}
	counter.Add(now, topk.Key{Namespace: o.Namespace, Entity: o.Entity, Resource: o.Resource, Limit: o.Limit}, o.Amount)
}

// shown returns the activity as operators read it.
func (a *activity) shown(decided func() map[string]int64) controlapi.Activity {
	return controlapi.Activity{Denied: a.denied, Busiest: a.busiest, Decided: decided, Since: a.since}
}
