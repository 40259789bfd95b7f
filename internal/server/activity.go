package server

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// activity counts limits of entities by their denials and their use.
type activity struct {
	since                   time.Time
	denied, busiest, shadow *controlapi.TopCounter
	undefined               undefinedLimits
}

func newActivity(since time.Time) *activity {
	return &activity{since: since, denied: controlapi.NewTopCounter(), busiest: controlapi.NewTopCounter(), shadow: controlapi.NewTopCounter()}
}

// observe implements rls.Config.Observe.
func (a *activity) observe(now time.Time, o rls.Observation) {
	if o.Missing {
		a.undefined.add(now, o)
	}
	counter := a.busiest
	switch {
	case o.Shadow:
		counter = a.shadow
	case o.Denied:
		counter = a.denied
	}
	counter.Add(now, controlapi.TopKey{Namespace: o.Namespace, Entity: o.Entity, Resource: o.Resource, Limit: o.Limit}, o.Amount)
}

// shown returns the activity as operators read it.
func (a *activity) shown(of *rls.Service) controlapi.Activity {
	return controlapi.Activity{Denied: a.denied, Busiest: a.busiest, Shadow: a.shadow, Decided: of.Decided, DeniedBy: of.DeniedBy, Since: a.since}
}
