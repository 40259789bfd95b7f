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
		key("match", "[pattern](#how-a-call-is-decided) for each key", yamlcfg.Dict[descriptor.MatchSpec]{Out: &r.match, What: "a descriptor's entry", Item: match}),
	}, r.flat.keys(), []yamlcfg.Key{
		key("takes", "several buckets, all or nothing, each with `entity`, `resource`, `resources`, `parent`, `limits`, `consume`, `reserve`", yamlcfg.List[take]{Out: &r.takes, Item: (*take).schema}),
		key("unlimited", "admits the descriptor, takes nothing; others of the call are still decided", yamlcfg.Bool(&r.spec.Unlimited)),
		key("exempt", "admits the [whole call](#deny-and-exempt), and takes nothing of it", yamlcfg.OneOf(&r.spec.Exempt, yamlcfg.As("call", true))),
		key("deny", "[denies](#deny-and-exempt) each call with the descriptor", denial(&r.spec.Deny)),
		key("overdraw", "a number of hits above 0 of a descriptor is a charge, taken whatever is left; 0 peeks. That of the call is a take", yamlcfg.Bool(&r.spec.Overdraw)),
		key("settle", "[settles](llm-gateways.md#reserve-and-settle-by-id) the reservation of the entry `reservation_id`", amounts(&r.settle, settled)),
		key("end", "ends the request of the entry `reservation_id`: frees its places [in flight](#requests-in-flight), other reserved amounts stay", yamlcfg.Bool(&r.spec.End)),
		key("override", "limit that Envoy's `limit` of a descriptor replaces", limitName(&r.spec.Override)),
		key("mode", "`shadow`: own buckets, no denials, no usage, reports would-be denials; the search for a rule goes on", yamlcfg.OneOf(&r.spec.Shadow, yamlcfg.As("enforce", false), yamlcfg.As("shadow", true))),
		key("on_unavailable", "answer while the store is unavailable", policy(&r.spec.OnUnavailable)),
		key("local", "settings of `local`", local(&r.spec.LocalShare)),
		key("stored", "allows limits that only the store has", yamlcfg.OneOf(&r.spec.Stored, yamlcfg.As("expected", true))),
		key("lease", "[token leases](#token-leases) of the rule's buckets and their parents; `embedded` leases nothing", lease(&r.spec.Lease)),
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

// match is a pattern for a value: one of a set, or {set: …}.
func match(out *descriptor.MatchSpec) yamlcfg.Schema {
	return pattern(out, key("set", "name under [`sets`](#settings)", yamlcfg.Name(&out.Set)))
}

// set is a pattern that has a name.
func set(out *descriptor.MatchSpec) yamlcfg.Schema { return pattern(out) }

// names returns the names of keys.
func names(keys []yamlcfg.Key) []string {
	out := make([]string, len(keys))
	for i := range keys {
		out[i] = keys[i].Name
	}
	return out
}

// pattern is a pattern for a value: text, a list of texts, {regex: …} or {cidr: …}.
func pattern(out *descriptor.MatchSpec, more ...yamlcfg.Key) yamlcfg.Schema {
	text := yamlcfg.Literal(&out.Value)
	list := yamlcfg.List[string]{Out: &out.Values, Item: yamlcfg.Literal}
	forms := slices.Concat([]string{"regex", "cidr"}, names(more))
	return yamlcfg.Either{
		Mapping: yamlcfg.Object{Title: "match", OneOf: forms, Keys: append([]yamlcfg.Key{
			key("regex", "for the whole value", yamlcfg.Name(&out.Regex)), key("cidr", "blocks of addresses", yamlcfg.Names(&out.CIDR)),
		}, more...)}.Then(func(n yamlcfg.Node, sound bool) {
			given := 0
			for _, has := range []bool{out.Regex != "", len(out.CIDR) > 0, out.Set != ""} {
				if has {
					given++
				}
			}
			switch {
			case !sound:
			case given > 1:
				n.Failf("has more than one of %s: keep one; another rule can have the others", strings.Join(forms, ", "))
			case given == 0:
				n.Failf("needs one of %s", strings.Join(forms, ", "))
			}
		}),
		Other: yamlcfg.Scalar{Of: yamlcfg.Shape{AnyOf: []*yamlcfg.Shape{text.Shape(), list.Shape()}}, Read: func(n yamlcfg.Node) {
			switch {
			case n.IsScalar():
				text.Decode(n)
			case n.IsList():
				if list.Decode(n); len(out.Values) == 0 {
					n.Failf("is an empty list, which matches nothing: name a value, or leave the rule out")
				}
			default:
				n.Failf(`must be text, a list of texts, {regex: "…"} or {cidr: ["…"]}, not %s`, n.Describe())
			}
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
