package config

import (
	"cmp"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// WithDomains returns the configuration with more domains than those of its files. Every one replaces a domain of the
// files with the same name; taken names those. The problems say why the domains cannot be used; then c stays as it
// is.
func (c *Config) WithDomains(more []descriptor.DomainSpec) (with *Config, taken []string, problems []descriptor.Problem) {
	specs := slices.Clone(c.specs)
	for _, spec := range more {
		spec.Namespace = cmp.Or(spec.Namespace, limiter.DefaultNamespace)
		spec.DenyUnknown, spec.Body = c.DenyUnknown, c.Body
		at := slices.IndexFunc(specs, func(s descriptor.DomainSpec) bool { return s.Domain == spec.Domain })
		if at < 0 {
			specs = append(specs, spec)
			continue
		}
		taken = append(taken, spec.Domain)
		specs[at] = spec
	}
	rules, problems := descriptor.Compile(specs, c.Static.Plans)
	if len(problems) > 0 {
		return nil, nil, problems
	}
	out := *c
	out.Rules = rules
	return &out, taken, nil
}
