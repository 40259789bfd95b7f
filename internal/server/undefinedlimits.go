package server

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

const (
	// maxUndefined bounds the limits that are remembered. Their names come from the configuration.
	maxUndefined = 64
	// undefinedTime is how long a limit is remembered after the last request that consumed it.
	undefinedTime = 10 * time.Minute
)

// undefinedLimits has the limits that requests consumed, and that no level defined. The zero value has
// none. It is safe for concurrent use.
type undefinedLimits struct {
	mu     sync.Mutex
	byName map[string]undefinedLimit
}

// undefinedLimit is a limit that no level defined for a request.
type undefinedLimit struct {
	name        string
	since, last time.Time // of its requests

	namespace, entity, resource string // of the last request
}

// add notes a request that was denied because no level defines its limit.
func (u *undefinedLimits) add(now time.Time, o rls.Observation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, known := u.byName[o.Limit]
	if !known && len(u.byName) >= maxUndefined {
		return
	}
	if !known || now.Sub(before.last) > undefinedTime {
		before.since = now
	}
	if u.byName == nil {
		u.byName = make(map[string]undefinedLimit)
	}
	// the names of a request share its memory
	u.byName[o.Limit] = undefinedLimit{
		name: o.Limit, since: before.since, last: now,
		namespace: o.Namespace, entity: strings.Clone(o.Entity), resource: strings.Clone(o.Resource),
	}
}

// clear forgets all limits: another configuration is in force.
func (u *undefinedLimits) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.byName = nil
}

// list returns the limits that no level defines yet, in order of names. effective returns the limits that
// decide now. A limit of which that is not known stays.
func (u *undefinedLimits) list(ctx context.Context, now time.Time, effective func(ctx context.Context, namespace, entity, resource string) ([]limiter.EffectiveLimit, error)) []undefinedLimit {
	u.mu.Lock()
	all := slices.Collect(maps.Values(u.byName))
	u.mu.Unlock()
	slices.SortFunc(all, func(a, b undefinedLimit) int { return strings.Compare(a.name, b.name) })
	return slices.DeleteFunc(all, func(l undefinedLimit) bool {
		if now.Sub(l.last) > undefinedTime {
			return true
		}
		in, err := effective(ctx, l.namespace, l.entity, l.resource)
		return err == nil && slices.ContainsFunc(in, func(e limiter.EffectiveLimit) bool { return e.Limit.Name == l.name })
	})
}
