package config

import (
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// domain is a domain in the form of the file.
type domain struct {
	spec descriptor.DomainSpec
	at   yamlcfg.Place // of its name
	deny *bool         // nil = the configuration's setting for all domains
	body bool          // it has a body of its own, in spec
	says bool          // there is a list of rules, which may be empty
}

// domains is a list of domains.
func domains(out *[]domain) yamlcfg.Schema {
	return yamlcfg.List[domain]{Out: out, Item: (*domain).schema}
}

func (dom *domain) schema() yamlcfg.Schema {
	spec := &dom.spec
	var rules []rule
	allow, deny := false, true
	return yamlcfg.Object{Title: "domain", Needs: []string{"domain"}, Missing: needsDomain, Keys: []yamlcfg.Key{
		key("domain", "domain of the gateway's filter", yamlcfg.Name(&spec.Domain)),
		key("namespace", "tenant of buckets, entities and limits; namespaces share nothing", yamlcfg.Name(&spec.Namespace)),
		key("unmatched", "for its descriptors without a rule", yamlcfg.OneOf(&dom.deny, yamlcfg.As("allow", &allow), yamlcfg.As("deny", &deny))),
		key("body", "[body](#bodies-of-denials) of its denials", body(&spec.Body)),
		key("resources", "[lists of resources](#lists-of-resources), for rules without their own", listed(&spec.Resources)),
		key("rules", "rules, in order", yamlcfg.List[rule]{Out: &rules, Item: (*rule).schema}),
	}}.Then(func(n yamlcfg.Node, _ bool) {
		spec.Path, dom.at, dom.says = n.Path(), n.Find(n.Below("domain")), rules != nil
		dom.body = n.Has("body")
		for i := range rules {
			spec.Rules = append(spec.Rules, rules[i].spec)
		}
	})
}

const needsDomain = "needs domain, the name that the gateway's rate limit filter sends"

// envoyFile is a file of envoyproxy/ratelimit: a domain and its descriptors.
func (dom *domain) envoyFile() yamlcfg.Schema {
	return yamlcfg.Object{Title: "file", Needs: []string{"domain"}, Missing: needsDomain, Keys: []yamlcfg.Key{
		key("domain", "domain of the gateway's filter", yamlcfg.Name(&dom.spec.Domain)),
		key("descriptors", "its descriptors", tree(&dom.spec.Tree, maxTree)),
	}}.Then(func(n yamlcfg.Node, _ bool) {
		dom.spec.Path, dom.at, dom.says = n.Path(), n.Find(n.Below("domain")), dom.spec.Tree != nil
	})
}

// includedSchema is an included file. The file has a list of domains, or one domain at its root,
// with rules or with the descriptors of envoyproxy/ratelimit. Or it is a list, the limits of limitador.
type includedSchema struct {
	out    *[]domain
	limits bool // it is a file of limits, which may be none
}

func (s *includedSchema) Decode(n yamlcfg.Node) {
	switch {
	case n.Empty():
	case isLimitFile(n):
		s.limits = true
		var limits []callLimit
		limitFile(&limits).Decode(n)
		*s.out = callLimitsOf(limits, nil)
	case !n.IsMapping():
		n.Hide() // it may be any file that was named by mistake
		n.Failf("must be a mapping: {domains: […]}, or just one domain with its rules, or the limits of limitador: [{namespace, max_value, seconds}]; not %s", n.Describe())
	case n.Has("descriptors"):
		s.one((*domain).envoyFile, n)
	case n.Has("domains"):
		keys(key("domains", "", domains(s.out))).Decode(n)
	default:
		s.one((*domain).schema, n)
	}
}

func (s *includedSchema) one(schema func(*domain) yamlcfg.Schema, n yamlcfg.Node) {
	*s.out = make([]domain, 1)
	schema(&(*s.out)[0]).Decode(n)
}

// Shape describes the forms of the file.
func (s *includedSchema) Shape() *yamlcfg.Shape {
	return &yamlcfg.Shape{AnyOf: []*yamlcfg.Shape{domains(s.out).Shape(), new(domain).envoyFile().Shape(), limitFile(new([]callLimit)).Shape()}}
}
