package config

import (
	"strings"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// warner reports what is legal and probably not meant.
type warner struct {
	*report

	consumed map[string]bool // names of the limits that rules consume
	resolves map[string]bool // names of the limits at any level of the file
	shared   map[string]bool // those of resources and the system
}

// warnings warns about domains without rules, about limits that are consumed and given nowhere, or that hold less than
// is consumed, about parents without limits, about
// long periods that look like budgets, about headers that are never sent, and about
// leases and a directory that are not used.
func (f *file) warnings(r *report, specs []descriptor.DomainSpec) {
	w := warner{report: r, consumed: map[string]bool{}, resolves: map[string]bool{}, shared: map[string]bool{}}
	levels := f.limits.levels()
	for _, l := range levels {
		for i := range l.value.Len() {
			w.resolves[l.value.At(i).Name] = true
			if !strings.HasPrefix(l.path, "limits.entities") {
				w.shared[l.value.At(i).Name] = true
			}
		}
	}
	w.ruleless(specs)
	w.takes(specs, w.unresolved)
	w.amounts(f, specs)
	w.parents(f, specs)
	for _, l := range append(levels, f.plans...) {
		w.budgets(l.path, l.value)
	}
	w.takes(specs, func(t *descriptor.TakeSpec) { w.budgets(t.Path+".limits", t.Limits) })
	for i := range specs {
		w.treeBudgets(specs[i].Tree)
	}
	f.unheard(r)
	f.leases(r, specs)
	if s := f.cfg.Store; f.cfg.Budgets.Set.Len() > 0 && s.Type == StoreEmbedded && s.Embedded.Data == "" {
		r.warn(r.find("limits"), "have budgets, which are watched with a data directory only (store.embedded.data, or --data), and in a table by ratelimit aggregate")
	}
	if s := f.cfg.Store; s.Type != StoreEmbedded && s.Embedded.Data != "" {
		r.warn(r.find("store.embedded.data"), "is not used: the store is %s", s.Type)
	}
	_, typed := r.places["store.type"]
	if at, ok := r.places["store.dynamodb"]; ok && !typed && f.cfg.Store.Type == StoreEmbedded {
		r.warn(at, "is used with store.type: dynamodb, or --store dynamodb, only: without them buckets are in the program itself")
	}
}

// ruleless warns about domains that limit nothing.
func (w warner) ruleless(specs []descriptor.DomainSpec) {
	for i := range specs {
		if s := &specs[i]; len(s.Rules) == 0 && len(s.Tree) == 0 && !s.DenyUnknown {
			w.warn(w.find(s.Path), "the domain %s has no rules: nothing in it is limited", s.Domain)
		}
	}
}

func (warner) takes(specs []descriptor.DomainSpec, visit func(*descriptor.TakeSpec)) {
	for i := range specs {
		for j := range specs[i].Rules {
			for k := range specs[i].Rules[j].Takes {
				visit(&specs[i].Rules[j].Takes[k])
			}
		}
	}
}

// unresolved warns about consumed limits that only the store can give.
func (w warner) unresolved(t *descriptor.TakeSpec) {
	own := t.Limits != nil || t.Plan != ""
	kind := ".consume"
	if t.Reserve {
		kind = ".reserve"
	}
	for _, c := range t.Consume {
		w.consumed[c.Limit] = true
		if !own && !w.resolves[c.Limit] {
			w.warn(w.find(join(t.Path+kind, c.Limit)), "no level under limits has %s: unless stored limits provide it, what the rule matches is denied as not configured", c.Limit)
		}
	}
}

// budgetPeriod is the period from which a limit is likely to be meant as a budget.
const budgetPeriod = day

// budgets warns about consumed limits of a day and longer that have no smaller burst: one
// that is stated shows that the limit is known to be no counter that starts anew.
func (w warner) budgets(path string, limits *limiter.Limits) {
	for i := range limits.Len() {
		l := limits.At(i)
		if w.consumed[l.Name] && l.RefillPeriod >= budgetPeriod && l.Capacity >= l.RefillAmount {
			w.warn(w.find(join(path, l.Name)), "%s is no budget that starts anew: within %s up to %d are admitted, the capacity and the refill; a smaller burst lowers that",
				l, shortDuration(l.RefillPeriod), l.Capacity+l.RefillAmount)
		}
	}
}

// treeBudgets is budgets of limits of envoyproxy/ratelimit, which count anew in each of their units there.
func (w warner) treeBudgets(tree []descriptor.TreeSpec) {
	for i := range tree {
		s := &tree[i]
		w.treeBudgets(s.Children)
		if s.Limit == nil || s.Limit.RequestsPerUnit == 0 || s.Limit.Unlimited {
			continue
		}
		switch unit := strings.ToLower(s.Limit.Unit); unit {
		case "day", "week", "month", "year":
			n := int64(s.Limit.RequestsPerUnit)
			w.warn(w.find(s.Path+".rate_limit"), "%d/%s is no counter that starts anew: within a %s up to %d are admitted, the capacity and the refill; a native rule with a smaller burst lowers that",
				n, unit, unit, 2*n)
		}
	}
}

// levels returns the limits at every level, with where they stand.
func (s *limitsSection) levels() []entry[*limiter.Limits] {
	all := limitsOf(append([]entry[level]{{path: "limits.system", value: s.system}}, s.resources...))
	for _, e := range s.entities {
		all = append(all, limitsOf(e.value.limits)...)
	}
	return all
}
