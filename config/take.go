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
	given   bool // it stands in the list, or the rule has a key of it
}

func (t *take) schema() yamlcfg.Schema {
	return yamlcfg.Object{Title: "rule", Keys: t.keys()}.Then(func(n yamlcfg.Node, _ bool) { t.path, t.given = n.Path(), true })
}

// keys are the keys of an item of takes, or of the rule itself.
func (t *take) keys() []yamlcfg.Key {
	return []yamlcfg.Key{
		key("entity", "template of the owner", yamlcfg.Name(&t.spec.Entity)),
		key("resource", "template of the use", yamlcfg.Name(&t.spec.Resource)),
		key("resources", "[values](#lists-of-resources) that `resource` may have", listed(&t.spec.Resources)),
		key("parent", "templates of the parents, nearest first; absent keys leave one out", yamlcfg.Names(&t.spec.Parents)),
		key("limits", "a plan (template) or own limits, in separate buckets: a plan's are shared by its rules, others belong to the rule, by its name", planOrLimits(&t.spec)),
		key("consume", "amount for each limit: three decimals, or the number of the call. 0 needs one token and takes none", amounts(&t.consume, consumed)),
		key("reserve", "amounts to [settle later](llm-gateways.md#reserve-and-settle-by-id)", amounts(&t.reserve, reserved)),
	}
}

// specs returns the take, or two takes of one bucket if it both consumes and reserves. It returns
// none if no key was given.
func (t *take) specs() []descriptor.TakeSpec {
	if !t.given {
		return nil
	}
	t.spec.Path = t.path
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

// planOrLimits is limits, or a template for the name of a plan.
func planOrLimits(out *descriptor.TakeSpec) yamlcfg.Schema {
	plan := yamlcfg.Name(&out.Plan)
	return yamlcfg.Either{Mapping: limitsSchema{out: &out.Limits}, Other: yamlcfg.Scalar{Of: *plan.Shape(), Read: func(n yamlcfg.Node) {
		if !n.Is("!!str") {
			n.Failf(`must be the name of a plan, such as "{plan}", or limits, such as {rpm: 100/minute}, not %s`, n.Describe())
			return
		}
		plan.Decode(n)
	}}}
}
