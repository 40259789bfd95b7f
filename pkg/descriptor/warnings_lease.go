package descriptor

import "strings"

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
		limits: t.limitsOf + t.limitSet.describe(r), label: r.label,
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
