package descriptor

import (
	"maps"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxVariantNames is the most rules that are named for one variant.
const maxVariantNames = 3

// Variants names the buckets of a namespace that the rules keep apart from ordinary ones. It
// returns a text by the variant of the bucket, such as "plan free" or "rule uploads", with "
// (shadow)" for a shadow rule. Buckets of limits from a call have no name.
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
		found.add(rule, limitSet{}) // of the parents
	}
	if len(t.limitSet.parts) == 0 {
		found.add(rule, t.own)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.limitSets)) { // a value of the descriptor chooses the plan
		found.add(rule, r.limitSets[name])
	}
}

// variantNames are names by variants.
type variantNames map[uint64][]string

// add adds the name of the buckets of a rule's take with a plan, or with limits of its own.
func (all variantNames) add(rule *Rule, set limitSet) {
	name, isPlan := strings.CutPrefix(set.of, planPrefix)
	switch {
	case isPlan:
		name = "plan " + name
	case rule.leaf != nil:
		name = "descriptors of domain " + rule.domain.name
	case rule.when != nil:
		name = "limit " + rule.name
	default:
		name = "rule " + rule.name
	}
	if rule.shadow && isPlan {
		name += " of rule " + rule.name
	}
	if rule.shadow {
		name += " (shadow)"
	}
	v := limiter.VariantOf(set.limits, set.of, rule.label, rule.shadow)
	if names := all[v]; !slices.Contains(names, name) && len(names) <= maxVariantNames {
		all[v] = append(names, name)
	}
}
