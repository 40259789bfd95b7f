package config

import (
	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// take is one bucket of a rule in the form of the file.
type take struct {
	path    string
	spec    descriptor.TakeSpec
	consume []entry[descriptor.ConsumeSpec]
	reserve []entry[descriptor.ConsumeSpec]
	given   bool // at least one key is given
}

type takeSchema struct{ out *take }

func (s takeSchema) decode(d *decoder, v value) {
	s.object().decode(d, v)
	s.out.path = d.scope + v.path
	s.out.given = true
}

func (s takeSchema) walk(path string, visit func(string)) { s.object().walk(path, visit) }

func (s takeSchema) object() object { return object{title: "rule", keys: s.out.keys()} }

// keys are the keys of an item of takes, or of the rule itself.
func (t *take) keys() []key {
	keys := []key{
		{"entity", name(&t.spec.Entity)},
		{"resource", name(&t.spec.Resource)},
		{"resources", listed(&t.spec.Resources)},
		{"parent", names(&t.spec.Parents)},
		{"limits", planOrLimits{&t.spec}},
		{"consume", amounts(&t.consume, consumed)},
		{"reserve", amounts(&t.reserve, reserved)},
	}
	for i := range keys {
		keys[i].schema = given{keys[i].schema, &t.given}
	}
	return keys
}

// specs returns the take, or two takes of one bucket if it both consumes and reserves. It returns
// none if no key was given.
func (t *take) specs(path string) []descriptor.TakeSpec {
	if !t.given {
		return nil
	}
	t.spec.Path = path
	consumes, reserves := t.spec, t.spec
	reserves.Reserve = true
	consumes.Consume, reserves.Consume = specs(t.consume), specs(t.reserve)
	switch {
	case len(t.reserve) == 0:
		return []descriptor.TakeSpec{consumes}
	case len(t.consume) == 0:
		return []descriptor.TakeSpec{reserves}
	default:
		return []descriptor.TakeSpec{consumes, reserves}
	}
}

func specs(amounts []entry[descriptor.ConsumeSpec]) []descriptor.ConsumeSpec {
	if len(amounts) == 0 {
		return nil
	}
	out := make([]descriptor.ConsumeSpec, len(amounts))
	for i, a := range amounts {
		out[i] = a.value
		out[i].Limit = a.name
	}
	return out
}

// listed is a list of resources. It must not be empty: an empty list could mean all or none.
func listed(out *[]string) schema {
	return scalar(func(d *decoder, v value) {
		if v.node.Kind == yaml.SequenceNode && len(v.node.Content) == 0 {
			d.failf(v, "is empty; name the resources, or leave it out to let every value be one")
			return
		}
		names(out).decode(d, v)
	})
}

// planOrLimits is limits, or a template for the name of a plan.
type planOrLimits struct{ out *descriptor.TakeSpec }

func (s planOrLimits) decode(d *decoder, v value) {
	switch {
	case v.node.Kind == yaml.MappingNode:
		limits(&s.out.Limits).decode(d, v)
	case v.node.Kind == yaml.ScalarNode && v.node.Tag == "!!str":
		name(&s.out.Plan).decode(d, v)
	default:
		d.failf(v, `must be the name of a plan, such as "{plan}", or limits, such as {rpm: 100/minute}, not %s`, d.describe(v.node))
	}
}

func (s planOrLimits) walk(path string, visit func(string)) { limits(&s.out.Limits).walk(path, visit) }

// limitName is the name of a limit.
func limitName(out *string) schema {
	return scalar(func(d *decoder, v value) {
		var s string
		name(&s).decode(d, v)
		if s == "" {
			return
		}
		if err := limiter.ValidateLimitName(s); err != nil {
			d.failf(v, "%s", reason(err))
			return
		}
		*out = s
	})
}
