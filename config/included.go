package config

import (
	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// included returns the domains of an included file. The file has a list of domains, or one domain
// at its root, with rules or with the descriptors of envoyproxy/ratelimit.
func included(r *yamlcfg.Report, s source) []domain {
	var found []domain
	d := yamlcfg.NewDecoder(r, s.name, s.name+":")
	decode(d, s, includedSchema{&found})
	for i := range found {
		found[i].spec.Overdraw = s.overdraw
	}
	return found
}

type includedSchema struct{ out *[]domain }

func (s includedSchema) Decode(d *yamlcfg.Decoder, v yamlcfg.Value) {
	switch {
	case v.Null():
	case !v.IsMapping():
		d.Hide(v) // it may be any file that was named by mistake
		d.Failf(v, "must be a mapping: {domains: […]}, or just one domain with its rules; not %s", d.Describe(v))
	case v.Has("descriptors"):
		*s.out = make([]domain, 1)
		(&(*s.out)[0]).envoyFile().Decode(d, v)
	case v.Has("domains"):
		yamlcfg.Object{Keys: []yamlcfg.Key{key("domains", "", domains(s.out))}}.Decode(d, v)
	default:
		*s.out = make([]domain, 1)
		(&(*s.out)[0]).schema().Decode(d, v)
	}
}

// Shape describes the forms of the file.
func (s includedSchema) Shape() *yamlcfg.Shape {
	return &yamlcfg.Shape{AnyOf: []*yamlcfg.Shape{domains(s.out).Shape(), new(domain).envoyFile().Shape()}}
}
