package config

import (
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// rule is a rule in the form of the file.
type rule struct {
	spec descriptor.RuleSpec

	match  []yamlcfg.Entry[descriptor.MatchSpec]
	flat   take
	takes  []take
	settle []yamlcfg.Entry[descriptor.ConsumeSpec]
}

func (r *rule) schema() yamlcfg.Schema {
	return yamlcfg.Object{Title: "rule", Needs: []string{"match"}, Keys: slices.Concat([]yamlcfg.Key{
		key("name", "name in metrics, logs and answers", yamlcfg.Name(&r.spec.Name)),
		key("match", "a [pattern](#how-a-call-is-decided) for each key", yamlcfg.Dict[descriptor.MatchSpec]{Out: &r.match, What: "a descriptor's entry", Item: match}),
	}, r.flat.keys(), []yamlcfg.Key{
		key("takes", "several buckets, all or nothing, each with `entity`, `resource`, `resources`, `parent`, `limits`, `consume`, `reserve`", yamlcfg.List[take]{Out: &r.takes, Item: (*take).schema}),
		key("unlimited", "admits the descriptor, takes nothing; others of the call are still decided", yamlcfg.Bool(&r.spec.Unlimited)),
		key("overdraw", "an explicit number of hits above 0 is a charge, taken whatever is left; 0 peeks", yamlcfg.Bool(&r.spec.Overdraw)),
		key("settle", "settles the reservation of the entry `reservation_id`, once; the descriptor needs a number", amounts(&r.settle, settled)),
		key("override", "the limit that Envoy's `limit` of a descriptor replaces", limitName(&r.spec.Override)),
		key("mode", "`shadow`: own buckets, no denials, no usage, reports would-be denials; the search for a rule goes on", yamlcfg.OneOf(&r.spec.Shadow, yamlcfg.As("enforce", false), yamlcfg.As("shadow", true))),
		key("on_unavailable", "the answer while the store is unavailable", policy(&r.spec.OnUnavailable)),
		key("local", "settings of `local`", local(&r.spec.LocalShare)),
		key("stored", "`expected` allows the rule to consume limits that only the store has", yamlcfg.OneOf(&r.spec.Stored, yamlcfg.As("expected", true))),
		key("lease", "[token leases](#token-leases) of a fleet, for the rule's buckets and their parents'; `embedded` leases nothing", lease(&r.spec.Lease)),
	})}.Then(func(n yamlcfg.Node, sound bool) {
		before := n.Failures()
		r.finish(n)
		if !sound || n.Failures() > before {
			n.Unsound[r.spec.Path] = true
		}
	})
}

// finish puts the parts of the rule together.
func (r *rule) finish(n yamlcfg.Node) {
	r.spec.Path = n.Path()
	for _, m := range r.match {
		if m.Name == "*" { // descriptors with other keys match too
			r.spec.Open = true
			if m.Value.Value != "*" {
				n.Fail(n.Find(m.Path), `must be "*": the key "*" says that other keys may follow, with any value`)
			}
			continue
		}
		m.Value.Path = m.Path
		m.Value.Key, m.Value.Optional = strings.CutSuffix(m.Name, "?")
		if m.Value.Key == "" { // a key that is just a '?'
			m.Value.Key, m.Value.Optional = m.Name, false
		}
		r.spec.Match = append(r.spec.Match, m.Value)
	}
	r.spec.Settle = specs(r.settle)
	r.flat.path, r.flat.given = n.Path(), n.Given("entity", "resource", "resources", "parent", "limits", "consume", "reserve")
	if r.flat.given && len(r.takes) > 0 {
		n.Failf("has takes, and entity, resource, parent, limits, consume or reserve beside it: move them into takes")
	}
	for _, t := range append([]take{r.flat}, r.takes...) {
		r.spec.Takes = append(r.spec.Takes, t.specs()...)
	}
}

// match is a pattern for a value: text, {regex: …} or {cidr: …}.
func match(out *descriptor.MatchSpec) yamlcfg.Schema {
	text := yamlcfg.Literal(&out.Value)
	return yamlcfg.Either{
		Mapping: yamlcfg.Object{Title: "match", OneOf: []string{"regex", "cidr"}, Keys: []yamlcfg.Key{
			key("regex", "for the whole value", yamlcfg.Name(&out.Regex)), key("cidr", "blocks of addresses", yamlcfg.Names(&out.CIDR)),
		}}.Then(func(n yamlcfg.Node, sound bool) {
			regex, cidr := out.Regex != "", len(out.CIDR) > 0
			switch {
			case !sound:
			case regex && cidr:
				n.Failf("has regex and cidr: keep one; another rule can have the other")
			case !regex && !cidr:
				n.Failf("needs regex or cidr")
			}
		}),
		Other: yamlcfg.Scalar{Of: *text.Shape(), Read: func(n yamlcfg.Node) {
			if !n.IsScalar() {
				n.Failf(`must be text, {regex: "…"} or {cidr: ["…"]}, not %s`, n.Describe())
				return
			}
			text.Decode(n)
		}},
	}
}

// minLeaseFor is the shortest time that a lease can be for. A table takes milliseconds to grant
// one, so with shorter leases a replica would mostly have none.
const minLeaseFor = 10 * time.Millisecond

const leaseExample = "{max: 5000, for: 500ms}"

// lease is the leases that a rule allows: auto, none, or bounds.
func lease(out *limiter.LeasePolicy) yamlcfg.Schema {
	return yamlcfg.Either{
		Mapping: yamlcfg.Object{
			Title: "lease", OneOf: []string{"max", "for"}, Missing: "needs max or for, or both: " + leaseExample + "; write auto for a lease without bounds",
			Keys: []yamlcfg.Key{
				key("max", "most tokens of a limit that a replica holds, three decimals. Below a request or a thousandth of the capacity nothing is leased", yamlcfg.Thousandths(&out.Max, 1, maxAmount)),
				key("for", "demand that the tokens of a lease cover", yamlcfg.Duration(&out.For, minLeaseFor, limiter.MaxLeaseFor)),
			},
		},
		Other: yamlcfg.Scalar{Of: yamlcfg.Shape{Enum: []any{"auto", "none"}}, Read: func(n yamlcfg.Node) {
			switch n.Raw() {
			case "auto":
				*out = limiter.LeasePolicy{}
			case "none":
				out.None = true
			default:
				n.Failf("must be auto, none or %s, not %s%s", leaseExample, n.Describe(), yamlcfg.DidYouMean(n.Raw(), []string{"auto", "none"}))
			}
		}},
	}
}
