package config

import (
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// domain is a domain in the form of the file.
type domain struct {
	spec descriptor.DomainSpec
	at   place // of its name
	deny *bool // nil = the configuration's setting for all domains
	says bool  // there is a list of rules, which may be empty
}

// domains is a list of domains.
func domains(out *[]domain) schema {
	return list[domain]{out: out, item: func(dom *domain) schema { return domainSchema{dom} }}
}

type domainSchema struct{ out *domain }

func (s domainSchema) decode(d *decoder, v value) {
	spec := &s.out.spec
	spec.Path = d.scope + v.path
	var deny, denyGiven bool
	var rules []rule
	before := d.failures()
	s.object(&rules, given{unmatched(&deny), &denyGiven}).decode(d, v)
	if spec.Domain == "" && d.failures() == before {
		d.failf(v, "needs domain, the name that the gateway's rate limit filter sends")
	}
	s.out.at = d.find(d.scope + join(v.path, "domain"))
	if denyGiven {
		s.out.deny = &deny
	}
	for i := range rules {
		spec.Rules = append(spec.Rules, rules[i].spec)
	}
}

func (s domainSchema) object(rules *[]rule, deny schema) object {
	return object{title: "domain", keys: []key{
		{"domain", name(&s.out.spec.Domain)},
		{"namespace", name(&s.out.spec.Namespace)},
		{"unmatched", deny},
		{"resources", listed(&s.out.spec.Resources)},
		{"rules", listGiven{list[rule]{out: rules, item: func(r *rule) schema { return ruleSchema{r} }}, &s.out.says}},
	}}
}

func (s domainSchema) walk(path string, visit func(string)) {
	s.object(new([]rule), unmatched(new(bool))).walk(path, visit)
}

// rule is a rule in the form of the file.
type rule struct {
	spec descriptor.RuleSpec

	match  []entry[descriptor.MatchSpec]
	flat   take
	takes  []take
	settle []entry[descriptor.ConsumeSpec]
}

type ruleSchema struct{ out *rule }

func (s ruleSchema) decode(d *decoder, v value) {
	r := s.out
	before := d.failures()
	s.object().decode(d, v)
	r.spec.Path = d.scope + v.path
	for _, m := range r.match {
		if m.name == "*" {
			s.open(d, m)
			continue
		}
		m.value.Path = d.scope + m.path
		m.value.Key, m.value.Optional = cutOptional(m.name)
		r.spec.Match = append(r.spec.Match, m.value)
	}
	r.spec.Settle = specs(r.settle)
	r.spec.Takes = append(r.spec.Takes, r.flat.specs(d.scope+v.path)...)
	if len(r.spec.Takes) > 0 && len(r.takes) > 0 {
		d.failf(v, "has takes, and entity, resource, parent, limits, consume or reserve beside it: move them into takes")
	}
	for i := range r.takes {
		r.spec.Takes = append(r.spec.Takes, r.takes[i].specs(r.takes[i].path)...)
	}
	if d.failures() > before {
		d.unsound[r.spec.Path] = true
	}
}

// open notes that descriptors with other keys match too.
func (s ruleSchema) open(d *decoder, m entry[descriptor.MatchSpec]) {
	s.out.spec.Open = true
	if m.value.Value != "*" {
		d.fail(d.find(d.scope+m.path), `must be "*": the key "*" says that other keys may follow, with any value`)
	}
}

// cutOptional cuts the '?' off the key of an entry that may be absent.
func cutOptional(key string) (string, bool) {
	if last := len(key) - 1; last > 0 && key[last] == '?' {
		return key[:last], true
	}
	return key, false
}

func (s ruleSchema) object() object {
	r := s.out
	match := func(m *descriptor.MatchSpec) schema { return matchSchema{m} }
	return object{title: "rule", keys: slices.Concat([]key{
		{"name", name(&r.spec.Name)},
		{"match", dict[descriptor.MatchSpec]{out: &r.match, what: "a descriptor's entry", item: match}},
	}, r.flat.keys(), []key{
		{"takes", list[take]{out: &r.takes, item: func(t *take) schema { return takeSchema{t} }}},
		{"unlimited", boolean(&r.spec.Unlimited)},
		{"overdraw", boolean(&r.spec.Overdraw)},
		{"settle", amounts(&r.settle, byHits)},
		{"override", limitName(&r.spec.Override)},
		{"mode", oneOf(&r.spec.Shadow, word[bool]{"enforce", false}, word[bool]{"shadow", true})},
		{"on_unavailable", policy(&r.spec.OnUnavailable)},
		{"local", local(&r.spec.LocalShare)},
		{"lease", leaseSchema{&r.spec.Lease}},
	})}
}

func (s ruleSchema) walk(path string, visit func(string)) { s.object().walk(path, visit) }

// matchSchema is a pattern for a value: text, {regex: …} or {cidr: …}.
type matchSchema struct{ out *descriptor.MatchSpec }

func (s matchSchema) decode(d *decoder, v value) {
	if v.node.Kind != yaml.MappingNode {
		if v.node.Kind != yaml.ScalarNode || isNull(v.node) {
			d.failf(v, `must be text, {regex: "…"} or {cidr: ["…"]}, not %s`, d.describe(v.node))
			return
		}
		literal(&s.out.Value).decode(d, v)
		return
	}
	before := d.failures()
	s.object().decode(d, v)
	regex, cidr := s.out.Regex != "", len(s.out.CIDR) > 0
	switch {
	case d.failures() > before:
	case regex && cidr:
		d.failf(v, "has regex and cidr: keep one; another rule can have the other")
	case !regex && !cidr:
		d.failf(v, "needs regex or cidr")
	}
}

func (s matchSchema) object() object {
	return object{title: "match", keys: []key{{"regex", name(&s.out.Regex)}, {"cidr", names(&s.out.CIDR)}}}
}

func (s matchSchema) walk(path string, visit func(string)) { s.object().walk(path, visit) }
