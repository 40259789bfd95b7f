package config

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// maxTree bounds how deep descriptors of an envoyproxy/ratelimit file nest.
const maxTree = 256

// tree is a list of descriptors, each with more below it.
func tree(out *[]descriptor.TreeSpec, levels int) yamlcfg.Schema {
	return yamlcfg.List[descriptor.TreeSpec]{Out: out, Item: func(s *descriptor.TreeSpec) yamlcfg.Schema { return branch(s, levels) }}
}

// branch is a descriptor with at most so many levels, this one included.
func branch(out *descriptor.TreeSpec, levels int) yamlcfg.Schema {
	if levels == 0 {
		return yamlcfg.Scalar{Read: func(n yamlcfg.Node) {
			out.Path = n.Path()
			n.Failf("descriptors are nested more than %d deep: take levels out", maxTree)
			n.Unsound[out.Path] = true
		}}
	}
	return yamlcfg.Object{Title: "descriptor", Needs: []string{"key"}, Keys: []yamlcfg.Key{
		key("key", "key of an entry", text(&out.Key)),
		key("value", "its value; `*` is any run of bytes", orNothing{yamlcfg.Literal(&out.Value)}),
		key("rate_limit", "limit, if this is the last entry", orNothing{treeLimit(&out.Limit)}),
		key("name", "no effect, with a warning", without("the name of a limit stands under rate_limit")),
		key("shadow_mode", "no denials, no usage, reports would-be denials", yamlcfg.Bool(&out.Shadow)),
		key("quota_mode", "reports an excess; denies if all descriptors of the call with `quota_mode` are over, or one without", yamlcfg.Bool(&out.Quota)),
		key("share_threshold", "all values of the `*` share one bucket", yamlcfg.Bool(&out.ShareThreshold)),
		key("detailed_metric", "no effect, with a warning", without("metrics have the names of rules, never values of descriptors")),
		key("value_to_metric", "no effect, with a warning", without("metrics have the names of rules, never values of descriptors")),
		key("metadata", "dynamic metadata of answers, with `envoyproxy.metadata: rules`", treeMetadata(&out.Metadata)),
		key("descriptors", "next entry", tree(&out.Children, levels-1)),
	}}.Then(func(n yamlcfg.Node, sound bool) {
		out.Path = n.Path()
		if strings.Contains(out.Key, "*") {
			n.Warn(n.Where(), "has a '*' in its key, which stands for itself here; put it into the value")
		}
		if !sound {
			n.Unsound[out.Path] = true
		}
	})
}

// text is a scalar as it is written, and not empty.
func text(out *string) yamlcfg.Schema {
	of := yamlcfg.Literal(out)
	return yamlcfg.Scalar{Of: *of.Shape(), Read: func(n yamlcfg.Node) {
		if of.Decode(n); n.IsScalar() && n.Raw() == "" {
			n.Failf("must not be empty")
		}
	}}
}

// orNothing is a value that may be missing behind its key, as templates leave it.
type orNothing struct{ yamlcfg.Schema }

func (s orNothing) Decode(n yamlcfg.Node) {
	if !n.Empty() {
		s.Schema.Decode(n)
	}
}

// treeMetadata is a mapping of any values, whose keys are text.
func treeMetadata(out *map[string]any) yamlcfg.Schema {
	return yamlcfg.Scalar{Read: func(n yamlcfg.Node) {
		var value any
		if n.Empty() {
			return
		}
		before := n.Failures()
		n.Value(&value)
		mapping, ok := value.(map[string]any)
		if !ok && n.Failures() == before {
			n.Failf("must be a mapping with texts as keys, not %s", n.Describe())
		}
		if _, err := json.Marshal(mapping); err != nil { // an answer of /json has it
			n.Failf("has a number that JSON has not: NaN or an infinity")
			return
		}
		*out = mapping
	}}
}

// without is a key that is accepted and has no effect.
func without(why string) yamlcfg.Schema {
	return yamlcfg.Scalar{Read: func(n yamlcfg.Node) { n.Warn(n.Where(), "has no effect: %s", why) }}
}

// treeLimit is the rate_limit of a descriptor.
func treeLimit(out **descriptor.TreeLimitSpec) yamlcfg.Schema {
	l, requests := &descriptor.TreeLimitSpec{}, int64(-1)
	replaced := func(out *string) yamlcfg.Schema {
		return yamlcfg.Object{Title: "rate_limit.replaces", Needs: []string{"name"}, Keys: []yamlcfg.Key{key("name", "name of such a limit", yamlcfg.Name(out))}}
	}
	return yamlcfg.Object{Title: "rate_limit", Keys: []yamlcfg.Key{
		key("unit", "in any case of letters", yamlcfg.Name(&l.Unit)),
		key("requests_per_unit", "0 denies everything", yamlcfg.Integer(&requests, 0, math.MaxUint32)),
		key("unlimited", "admits everything; without a unit", yamlcfg.Bool(&l.Unlimited)),
		key("name", "name in answers and `replaces`", yamlcfg.Text(&l.Name)),
		key("replaces", "limits that do not count in a call with this one", yamlcfg.List[string]{Out: &l.Replaces, Item: replaced}),
	}}.Then(func(n yamlcfg.Node, sound bool) {
		if requests < 0 && !l.Unlimited && sound {
			n.Warn(n.Where(), "has no requests_per_unit, and so denies everything")
		}
		l.RequestsPerUnit = uint32(max(requests, 0)) // #nosec G115 -- the schema holds it to 32 bits
		*out = l
	})
}
