package config

import (
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// take is one bucket of a rule in the form of the file.
type take struct {
	path    string
	spec    descriptor.TakeSpec
	consume []yamlcfg.Entry[descriptor.ConsumeSpec]
	reserve []yamlcfg.Entry[descriptor.ConsumeSpec]
	given   bool // at least one key is given
}

func (t *take) schema() yamlcfg.Schema {
	return yamlcfg.Object{Title: "rule", Keys: t.keys()}.Then(func(d *yamlcfg.Decoder, v yamlcfg.Value, _ bool) {
		t.path = d.Scope + v.Path
		t.given = true
	})
}

// keys are the keys of an item of takes, or of the rule itself.
func (t *take) keys() []yamlcfg.Key {
	keys := []yamlcfg.Key{
		key("entity", "template of the owner", yamlcfg.Name(&t.spec.Entity)),
		key("resource", "template of the use", yamlcfg.Name(&t.spec.Resource)),
		key("resources", "[values](#lists-of-resources) that `resource` may have", listed(&t.spec.Resources)),
		key("parent", "templates of the parents, nearest first; absent keys leave one out", yamlcfg.Names(&t.spec.Parents)),
		key("limits", "the bucket's own limits: a plan (template) or limits. Such buckets are separate: a plan's are shared by its rules, others belong to the rule, by its name", planOrLimits(&t.spec)),
		key("consume", "amount for each limit: three decimals, or the number of the call. 0 needs one token and takes none", amounts(&t.consume, consumed)),
		key("reserve", "amounts to settle later: [LLM gateways](llm-gateways.md)", amounts(&t.reserve, reserved)),
	}
	for i := range keys {
		keys[i].Schema = yamlcfg.Given{Schema: keys[i].Schema, Out: &t.given}
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

func specs(amounts []yamlcfg.Entry[descriptor.ConsumeSpec]) []descriptor.ConsumeSpec {
	if len(amounts) == 0 {
		return nil
	}
	out := make([]descriptor.ConsumeSpec, len(amounts))
	for i, a := range amounts {
		out[i] = a.Value
		out[i].Limit = a.Name
	}
	return out
}

// listed is a list of resources. It must not be empty: an empty list could mean all or none.
func listed(out *[]string) yamlcfg.Schema {
	names := yamlcfg.Names(out)
	return yamlcfg.Scalar{Of: *names.Shape(), Read: func(d *yamlcfg.Decoder, v yamlcfg.Value) {
		if v.IsList() && v.Size() == 0 {
			d.Failf(v, "is empty; name the resources, or leave it out to let every value be one")
			return
		}
		names.Decode(d, v)
	}}
}

// planOrLimits is limits, or a template for the name of a plan.
func planOrLimits(out *descriptor.TakeSpec) yamlcfg.Schema {
	plan := yamlcfg.Name(&out.Plan)
	return yamlcfg.Either{Mapping: limits(&out.Limits), Other: yamlcfg.Scalar{Of: *plan.Shape(), Read: func(d *yamlcfg.Decoder, v yamlcfg.Value) {
		if !v.Is("!!str") {
			d.Failf(v, `must be the name of a plan, such as "{plan}", or limits, such as {rpm: 100/minute}, not %s`, d.Describe(v))
			return
		}
		plan.Decode(d, v)
	}}}
}

// limitName is the name of a limit.
func limitName(out *string) yamlcfg.Schema {
	return yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: "."}, Read: func(d *yamlcfg.Decoder, v yamlcfg.Value) {
		var s string
		yamlcfg.Name(&s).Decode(d, v)
		if s == "" {
			return
		}
		if err := validLimitName(s); err != nil {
			d.Failf(v, "%s", err)
			return
		}
		*out = s
	}}
}
