package config

import (
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// minLeaseFor is the shortest time that a lease can be for. A table takes milliseconds to grant
// one, so with shorter leases a replica would mostly have none.
const minLeaseFor = 10 * time.Millisecond

const leaseExample = "{max: 5000, for: 500ms}"

// lease is the leases that a rule allows: auto, none, or bounds.
func lease(out *limiter.LeasePolicy) yamlcfg.Schema {
	words := []string{"auto", "none"}
	return yamlcfg.Either{
		Mapping: yamlcfg.Object{
			Title: "lease", OneOf: []string{"max", "for"}, Missing: "needs max or for, or both: " + leaseExample + "; write auto for a lease without bounds",
			Keys: []yamlcfg.Key{
				key("max", "most tokens of a limit that a replica holds, three decimals. Below a request or a thousandth of the capacity nothing is leased", yamlcfg.Thousandths(&out.Max, 1, maxAmount)),
				key("for", "demand that the tokens of a lease cover", yamlcfg.Duration(&out.For, minLeaseFor, limiter.MaxLeaseFor)),
			},
		},
		Other: yamlcfg.Scalar{Of: yamlcfg.Shape{Enum: []any{"auto", "none"}}, Read: func(d *yamlcfg.Decoder, v yamlcfg.Value) {
			switch {
			case v.IsScalar() && v.Text() == "auto":
				*out = limiter.LeasePolicy{}
			case v.IsScalar() && v.Text() == "none":
				out.None = true
			case v.IsScalar():
				d.Failf(v, "must be auto, none or %s, not %s%s", leaseExample, d.Describe(v), yamlcfg.DidYouMean(v.Text(), words))
			default:
				d.Failf(v, "must be auto, none or %s, not %s", leaseExample, d.Describe(v))
			}
		}},
	}
}

// leases warns of bounds of leases where the store has no leases. A rule without leases is no
// mistake there.
func (f *file) leases(r *yamlcfg.Report, specs []descriptor.DomainSpec) {
	if f.cfg.Store.Type != StoreEmbedded {
		return
	}
	for i := range specs {
		for j := range specs[i].Rules {
			if rule := &specs[i].Rules[j]; rule.Lease != (limiter.LeasePolicy{}) && !rule.Lease.None {
				r.Warn(r.Find(rule.Path+".lease"), "is not used: the store embedded decides in memory, and leases nothing")
			}
		}
	}
}
