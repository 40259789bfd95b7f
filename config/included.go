package config

import "gopkg.in/yaml.v3"

// included returns the domains of an included file. The file has a list of domains, or one domain
// at its root, with rules or with the descriptors of envoyproxy/ratelimit.
func included(r *report, s source) []domain {
	var found []domain
	d := &decoder{report: r, file: s.name, scope: s.name + ":", hidden: make(map[*yaml.Node]bool)}
	d.source(s, includedSchema{&found})
	for i := range found {
		found[i].spec.Overdraw = s.overdraw
	}
	return found
}

type includedSchema struct{ out *[]domain }

func (s includedSchema) decode(d *decoder, v value) {
	switch {
	case isNull(v.node):
	case v.node.Kind != yaml.MappingNode:
		d.hide(v.node) // it may be any file that was named by mistake
		d.failf(v, "must be a mapping: {domains: […]}, or just one domain with its rules; not %s", d.describe(v.node))
	case hasKey(v.node, "descriptors"):
		*s.out = make([]domain, 1)
		envoyFile{&(*s.out)[0]}.decode(d, v)
	case hasKey(v.node, "domains"):
		object{keys: []key{{"domains", domains(s.out)}}}.decode(d, v)
	default:
		*s.out = make([]domain, 1)
		domainSchema{&(*s.out)[0]}.decode(d, v)
	}
}

func (s includedSchema) walk(path string, visit func(string)) {
	domains(s.out).walk(path, visit)
	envoyFile{&domain{}}.walk(path, visit)
}

// hasKey reports whether a mapping has a key.
func hasKey(n *yaml.Node, name string) bool {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}
