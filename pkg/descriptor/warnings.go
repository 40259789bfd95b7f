package descriptor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxCompared is the most pairs of rules that are compared for warnings of rules that can never
// match. Without it, many rules that the index cannot tell apart, as with regular expressions,
// would make loading quadratic in their number.
const maxCompared = 1 << 20

// Warnings returns legal rules that are probably mistakes:
// - a rule that can never match.
// - a settlement of a limit that no rule reserves.
// - an estimate that can never be admitted.
// - a shadow rule that takes nothing.
// - a bucket of several rules with different leases.
//
// In a domain with thousands of rules that are compared one by one, it may miss some rules that can
// never match.
func (r *Rules) Warnings() []Problem {
	w := warner{compared: maxCompared, leased: map[bucketName]*Rule{}}
	if r == nil {
		return nil
	}
	for _, rule := range r.rules {
		if rule.leaf == nil && rule.when == nil {
			w.rule(rule)
		}
	}
	return w.found
}

// warner is the state of one [Rules.Warnings].
type warner struct {
	compared int // how many more pairs of rules may be compared
	leased   map[bucketName]*Rule
	found    []Problem
}

func (w *warner) warn(path, format string, args ...any) {
	w.found = append(w.found, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

func (w *warner) rule(r *Rule) {
	if earlier := w.hiding(r); earlier != nil && earlier.buckets != r.buckets { // prices make rules with the same buckets
		w.warn(r.path, "can never match: %s (rule %q) stands before it and matches every descriptor that it would; put it first or leave it out",
			earlier.path, earlier.name)
	}
	if r.settle {
		w.settle(r)
	}
	if r.shadow && len(r.takes) == 0 && r.deny == nil {
		w.warn(r.path+".mode", "a shadow rule that takes nothing has no effect; leave the rule out or let it consume")
	}
	for i := range r.takes {
		t := &r.takes[i]
		w.estimates(t)
		w.lease(r, t)
	}
}

// settle warns of limits that no rule of the domain reserves: a settlement of them books nothing.
func (w *warner) settle(r *Rule) {
	for i := range r.settles {
		limit := r.settles[i].Limit
		reserved := slices.ContainsFunc(r.domain.rules, func(other *Rule) bool {
			return !other.shadow && slices.ContainsFunc(other.takes, func(t take) bool { return t.reserve && t.consumes(limit) })
		})
		if !reserved {
			w.warn(r.path+".settle."+limit, "no rule of the domain reserves %s, so there is nothing of it to settle", limit)
		}
	}
}

// estimates warns of estimates above the capacity of the rule's own limits.
func (w *warner) estimates(t *take) {
	for i := range t.consume {
		c := &t.consume[i]
		n := t.own.limits.Find(c.Limit)
		if c.Estimate == nil || n < 0 || t.own.limits.Unlimited(n) {
			continue
		}
		if capacity := t.own.limits.At(n).Capacity * limiter.Milli; c.Estimate.Max > capacity {
			w.warn(t.path+".reserve."+c.Limit+".estimate.max", "is above the capacity of %s, %s: a request with that estimate can never pass", c.Limit, tokens(capacity))
		}
	}
}

// hiding returns the first rule before r that surely matches every descriptor that r matches; nil
// when there is none. The index finds it by the example of r, which is the smallest descriptor that
// r matches. For a pattern that the example does not match, such as a regular expression, the rule
// must have the same pattern.
func (w *warner) hiding(r *Rule) *Rule {
	v := r.domain.view(r.Example(), nil)
	s := search{index: r.domain.enforcing, limit: r.order, hidden: r, left: w.compared}
	s.run(&v)
	w.compared = s.left
	return s.found
}

// bucketName identifies the buckets of a take by the templates of its rule. Takes with the same
// bucketName may use the same buckets.
type bucketName struct{ namespace, entity, resource, limits, label string }

// lease warns of leases that are too small for a request, and of rules that allow different leases
// on the same buckets. Such a bucket would change between the two leases.
func (w *warner) lease(r *Rule, t *take) {
	for i := range t.consume {
		if c := &t.consume[i]; !r.lease.None && r.lease.Max > 0 && c.Constant > r.lease.Max {
			w.warn(r.path+".lease.max", "is less than the %s of %s that a request takes, so that nothing is leased: raise it, or write `lease: none`", tokens(c.Constant), c.Limit)
		}
	}
	name := bucketName{
		namespace: r.domain.namespace, entity: t.entity.describe(r), resource: t.resource.describe(r),
		limits: t.own.of + t.limitSet.describe(r), label: r.label,
	}
	first, ok := w.leased[name]
	switch {
	case !ok:
		w.leased[name] = r
	case first.lease != r.lease:
		w.warn(r.path+".lease", "is %s, and rule %q takes from the same buckets with lease %s: a bucket follows the rule that took from it last; give both the same", r.lease, first.name, first.lease)
	}
}

// describe returns the template with the patterns of its placeholders.
func (t *template) describe(r *Rule) string {
	var b strings.Builder
	for i := range t.parts {
		p := &t.parts[i]
		if p.capture == literal {
			b.WriteString(p.text)
			continue
		}
		b.WriteString("{" + p.text + ": " + r.patterns[r.captures[p.capture].pattern].describe() + "}")
	}
	return b.String()
}
