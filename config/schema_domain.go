package config

import (
	"slices"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// domain is a domain in the form of the file.
type domain struct {
	spec descriptor.DomainSpec
	at   yamlcfg.Place // of its name
	deny *bool         // nil = the configuration's setting for all domains
	says bool          // there is a list of rules, which may be empty
}

// domains is a list of domains.
func domains(out *[]domain) yamlcfg.Schema {
	return yamlcfg.List[domain]{Out: out, Item: (*domain).schema}
}

func (dom *domain) schema() yamlcfg.Schema {
	spec := &dom.spec
	var deny, denyGiven bool
	var rules []rule
	return yamlcfg.Object{Title: "domain", Needs: []string{"domain"}, Missing: needsDomain, Keys: []yamlcfg.Key{
		key("domain", "the domain of the gateway's filter", yamlcfg.Name(&spec.Domain)),
		key("namespace", "the tenant of buckets, entities and limits; namespaces share nothing", yamlcfg.Name(&spec.Namespace)),
		key("unmatched", "for its descriptors without a rule", yamlcfg.Given{Schema: unmatched(&deny), Out: &denyGiven}),
		key("resources", "[lists of resources](#lists-of-resources), for rules without their own", listed(&spec.Resources)),
		key("rules", "the rules, in order", yamlcfg.ListGiven{Schema: yamlcfg.List[rule]{Out: &rules, Item: (*rule).schema}, Out: &dom.says}),
	}}.Then(func(d *yamlcfg.Decoder, v yamlcfg.Value, _ bool) {
		spec.Path = d.Scope + v.Path
		dom.at = d.Find(d.Scope + yamlcfg.Join(v.Path, "domain"))
		if denyGiven {
			dom.deny = &deny
		}
		for i := range rules {
			spec.Rules = append(spec.Rules, rules[i].spec)
		}
	})
}

const needsDomain = "needs domain, the name that the gateway's rate limit filter sends"

// rule is a rule in the form of the file.
type rule struct {
	spec descriptor.RuleSpec

	match  []yamlcfg.Entry[descriptor.MatchSpec]
	flat   take
	takes  []take
	settle []yamlcfg.Entry[descriptor.ConsumeSpec]
}

func (r *rule) schema() yamlcfg.Schema {
	return r.object().Then(func(d *yamlcfg.Decoder, v yamlcfg.Value, sound bool) {
		before := d.Failures()
		r.finish(d, v)
		if !sound || d.Failures() > before {
			d.Unsound[r.spec.Path] = true
		}
	})
}

// finish puts the parts of the rule together.
func (r *rule) finish(d *yamlcfg.Decoder, v yamlcfg.Value) {
	r.spec.Path = d.Scope + v.Path
	for _, m := range r.match {
		if m.Name == "*" {
			r.open(d, m)
			continue
		}
		m.Value.Path = d.Scope + m.Path
		m.Value.Key, m.Value.Optional = cutOptional(m.Name)
		r.spec.Match = append(r.spec.Match, m.Value)
	}
	r.spec.Settle = specs(r.settle)
	r.spec.Takes = append(r.spec.Takes, r.flat.specs(d.Scope+v.Path)...)
	if len(r.spec.Takes) > 0 && len(r.takes) > 0 {
		d.Failf(v, "has takes, and entity, resource, parent, limits, consume or reserve beside it: move them into takes")
	}
	for i := range r.takes {
		r.spec.Takes = append(r.spec.Takes, r.takes[i].specs(r.takes[i].path)...)
	}
}

// open notes that descriptors with other keys match too.
func (r *rule) open(d *yamlcfg.Decoder, m yamlcfg.Entry[descriptor.MatchSpec]) {
	r.spec.Open = true
	if m.Value.Value != "*" {
		d.Fail(d.Find(d.Scope+m.Path), `must be "*": the key "*" says that other keys may follow, with any value`)
	}
}

// cutOptional cuts the '?' off the key of an entry that may be absent.
func cutOptional(key string) (string, bool) {
	if last := len(key) - 1; last > 0 && key[last] == '?' {
		return key[:last], true
	}
	return key, false
}

func (r *rule) object() yamlcfg.Object {
	return yamlcfg.Object{Title: "rule", Keys: slices.Concat([]yamlcfg.Key{
		key("name", "name in metrics, logs and answers", yamlcfg.Name(&r.spec.Name)),
		key("match", "a [pattern](#how-a-call-is-decided) for each key", yamlcfg.Dict[descriptor.MatchSpec]{Out: &r.match, What: "a descriptor's entry", Item: match}),
	}, r.flat.keys(), []yamlcfg.Key{
		key("takes", "several buckets, all or nothing, each with `entity`, `resource`, `resources`, `parent`, `limits`, `consume`, `reserve`", yamlcfg.List[take]{Out: &r.takes, Item: (*take).schema}),
		key("unlimited", "admits the descriptor, takes nothing; others of the call are still decided", yamlcfg.Bool(&r.spec.Unlimited)),
		key("overdraw", "an explicit number of hits above 0 is a charge, taken whatever is left; 0 peeks", yamlcfg.Bool(&r.spec.Overdraw)),
		key("settle", "settles the reservation of the entry `reservation_id`, once; the descriptor needs a number", amounts(&r.settle, byHits)),
		key("override", "the limit that Envoy's `limit` of a descriptor replaces", limitName(&r.spec.Override)),
		key("mode", "`shadow`: own buckets, no denials, no usage, reports would-be denials; the search for a rule goes on", yamlcfg.OneOf(&r.spec.Shadow, yamlcfg.Word[bool]{Text: "enforce", Value: false}, yamlcfg.Word[bool]{Text: "shadow", Value: true})),
		key("on_unavailable", "the answer while the store is unavailable", yamlcfg.Given{Schema: policy(&r.spec.OnUnavailable), Out: new(bool)}),
		key("local", "settings of `local`", local(&r.spec.LocalShare)),
		key("lease", "[token leases](#token-leases) of a fleet, for the rule's buckets and their parents'; `embedded` leases nothing", lease(&r.spec.Lease)),
	})}
}

// match is a pattern for a value: text, {regex: …} or {cidr: …}.
func match(out *descriptor.MatchSpec) yamlcfg.Schema {
	text := yamlcfg.Literal(&out.Value)
	return yamlcfg.Either{
		Mapping: yamlcfg.Object{Title: "match", OneOf: []string{"regex", "cidr"}, Keys: []yamlcfg.Key{
			key("regex", "for the whole value", yamlcfg.Name(&out.Regex)), key("cidr", "blocks of addresses", yamlcfg.Names(&out.CIDR)),
		}}.Then(func(d *yamlcfg.Decoder, v yamlcfg.Value, sound bool) {
			regex, cidr := out.Regex != "", len(out.CIDR) > 0
			switch {
			case !sound:
			case regex && cidr:
				d.Failf(v, "has regex and cidr: keep one; another rule can have the other")
			case !regex && !cidr:
				d.Failf(v, "needs regex or cidr")
			}
		}),
		Other: yamlcfg.Scalar{Of: *text.Shape(), Read: func(d *yamlcfg.Decoder, v yamlcfg.Value) {
			if !v.IsScalar() || v.Null() {
				d.Failf(v, `must be text, {regex: "…"} or {cidr: ["…"]}, not %s`, d.Describe(v))
				return
			}
			text.Decode(d, v)
		}},
	}
}
