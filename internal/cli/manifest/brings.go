package manifest

import (
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// brought are the names that a manifest brings. The service may not have them yet.
type brought struct {
	namespace           bool            // the manifest names it
	entities, resources map[string]bool // with records of their own
	limits              map[string]bool // of the system or of resources
}

// brings returns the names that the manifest brings.
func (p *Plan) brings() *brought {
	b := &brought{namespace: p.named, entities: make(map[string]bool), resources: make(map[string]bool), limits: make(map[string]bool)}
	for i := range p.Changes {
		switch c := &p.Changes[i]; {
		case c.Result == api.Deleted:
		case c.Ref.Kind == limiter.RefEntity, c.Ref.Kind == limiter.RefEntityLimits:
			b.entities[c.Ref.Entity] = true
		case c.after.Limits != nil:
			b.resources[c.Ref.Resource] = true
			for name := range c.after.Limits.Limits {
				b.limits[name] = true
			}
		}
	}
	return b
}

// kinds returns the kinds of names that a change may bring. A manifest may bring entities.
func (b *brought) kinds(c *Change) []string {
	all := []string{api.NewEntity}
	if b.namespace {
		all = append(all, api.NewNamespace)
	}
	if e := c.after.Entity; e != nil && b.entities[string(e.Parent)] {
		all = append(all, api.NewParent)
	}
	if c.after.Limits == nil || c.Ref.Kind != limiter.RefEntityLimits {
		return all
	}
	if b.resources[c.Ref.Resource] {
		all = append(all, api.NewResource)
	}
	for name := range c.after.Limits.Limits {
		if !b.limits[name] {
			return all
		}
	}
	return append(all, api.NewLimit)
}
