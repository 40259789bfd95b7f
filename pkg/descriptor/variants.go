package descriptor

import (
	"maps"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxVariantNames bounds the rules that are named of one variant.
const maxVariantNames = 3

// Variants names what the buckets of a namespace are of that the rules keep apart from ordinary
// ones: by the variant of the bucket such as "plan free" or "rule uploads", with " (shadow)" of a
// shadow rule. Buckets of limits that came with a call have no name.
func (r *Rules) Variants(namespace string) map[uint64]string {
	found := make(variantNames)
	for _, d := range r.Domains() {
		if d.namespace != namespace {
			continue
		}
		for _, rule := range d.rules {
			for i := range rule.takes {
				r.variantsOf(rule, &rule.takes[i], found)
			}
		}
	}
	delete(found, 0)
	all := make(map[uint64]string, len(found))
	for variant, names := range found {
		if len(names) > maxVariantNames {
			names = append(names[:maxVariantNames], "...")
		}
		all[variant] = strings.Join(names, ", ")
	}
	return all
}

// variantsOf adds the names of a take's buckets by their variants.
func (r *Rules) variantsOf(rule *Rule, t *take, found variantNames) {
	if rule.shadow {
		found.add(rule, plan{}) // of the parents
	}
	if len(t.plan.parts) == 0 {
		found.add(rule, plan{limits: t.limits, of: t.limitsOf})
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.plans)) { // a value of the descriptor chooses it
		found.add(rule, r.plans[name])
	}
}

// variantNames are names by variants.
type variantNames map[uint64][]string

// add adds the name of the buckets of a rule's take under a plan, or under limits of its own.
func (all variantNames) add(rule *Rule, p plan) {
	name, isPlan := strings.CutPrefix(p.of, planPrefix)
	switch {
	case isPlan:
		name = "plan " + name
	case rule.leaf != nil:
		name = "descriptors of domain " + rule.domain.name
	default:
		name = "rule " + rule.name
	}
	if rule.shadow && isPlan {
		name += " of rule " + rule.name
	}
	if rule.shadow {
		name += " (shadow)"
	}
	v := limiter.VariantOf(p.limits, p.of, rule.label, rule.shadow)
	if names := all[v]; !slices.Contains(names, name) && len(names) <= maxVariantNames {
		all[v] = append(names, name)
	}
}
