package config

import (
	"time"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// minLeaseFor is the shortest time that a lease can be for. A table takes milliseconds to grant
// one, so with shorter leases a replica would mostly have none.
const minLeaseFor = 10 * time.Millisecond

// leaseSchema is the leases that a rule allows: auto, none, or bounds.
type leaseSchema struct{ out *limiter.LeasePolicy }

const leaseExample = "{max: 5000, for: 500ms}"

func (s leaseSchema) decode(d *decoder, v value) {
	if v.node.Kind == yaml.MappingNode {
		before := d.failures()
		s.object().decode(d, v)
		if *s.out == (limiter.LeasePolicy{}) && d.failures() == before {
			d.failf(v, "needs max or for, or both: %s; write auto for a lease without bounds", leaseExample)
		}
		return
	}
	switch {
	case v.node.Kind == yaml.ScalarNode && v.node.Value == "auto":
		*s.out = limiter.LeasePolicy{}
	case v.node.Kind == yaml.ScalarNode && v.node.Value == "none":
		s.out.None = true
	case v.node.Kind == yaml.ScalarNode:
		d.failf(v, "must be auto, none or %s, not %s%s", leaseExample, d.describe(v.node), didYouMean(v.node.Value, []string{"auto", "none"}))
	default:
		d.failf(v, "must be auto, none or %s, not %s", leaseExample, d.describe(v.node))
	}
}

func (s leaseSchema) object() object {
	return object{title: "lease", keys: []key{
		{"max", thousandths(&s.out.Max, 1, maxAmount)},
		{"for", duration(&s.out.For, minLeaseFor, limiter.MaxLeaseFor)},
	}}
}

func (s leaseSchema) walk(path string, visit func(string)) { s.object().walk(path, visit) }

// leases warns of bounds of leases where the store has no leases. A rule without leases is no
// mistake there.
func (f *file) leases(r *report, specs []descriptor.DomainSpec) {
	if f.cfg.Store.Type != StoreEmbedded {
		return
	}
	for i := range specs {
		for j := range specs[i].Rules {
			if rule := &specs[i].Rules[j]; rule.Lease != (limiter.LeasePolicy{}) && !rule.Lease.None {
				r.warn(r.find(rule.Path+".lease"), "is not used: the store embedded decides in memory, and leases nothing")
			}
		}
	}
}
