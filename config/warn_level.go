package config

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// warner reports legal settings that are probably mistakes.
type warner struct {
	*yamlcfg.Report

	file     *file
	takes    []taking         // of all rules
	consumed map[string]bool  // names of the limits that rules consume
	resolves map[string]bool  // names of the limits at any level of the file
	shared   map[string]bool  // names of the limits of resources and of the system
	least    map[string]int64 // capacities of the smallest limits by their names
}

// taking is a take with its rule and domain, and the path of its amounts.
type taking struct {
	*descriptor.TakeSpec

	domain  *descriptor.DomainSpec
	rule    *descriptor.RuleSpec
	amounts string
}

// parentPath returns the path of a parent, which is one of a list where there are several.
func (t *taking) parentPath(i int) string {
	if len(t.Parents) == 1 {
		return t.Path + ".parent"
	}
	return t.Path + ".parent[" + strconv.Itoa(i) + "]"
}

func newWarner(r *yamlcfg.Report, f *file, specs []descriptor.DomainSpec) *warner {
	w := &warner{Report: r, file: f, consumed: map[string]bool{}, resolves: map[string]bool{}, shared: map[string]bool{}, least: map[string]int64{}}
	for i := range specs {
		for j := range specs[i].Rules {
			rule := &specs[i].Rules[j]
			for k := range rule.Takes {
				t := taking{&rule.Takes[k], &specs[i], rule, rule.Takes[k].Path + ".consume"}
				if t.Reserve {
					t.amounts = t.Path + ".reserve"
				}
				w.takes = append(w.takes, t)
				for _, c := range t.Consume {
					w.consumed[c.Limit] = true
				}
			}
		}
	}
	for _, p := range f.plans {
		if slices.ContainsFunc(f.limits.entities, func(e yamlcfg.Entry[entity]) bool { return e.Value.plan == p.Name }) {
			p.Value.limits.AddNames(w.resolves)
		}
	}
	for _, l := range f.limits.all() {
		l.Value.limits.AddNames(w.resolves)
		if !strings.HasPrefix(l.Path, "limits.entities") {
			l.Value.limits.AddNames(w.shared)
		}
	}
	for _, l := range w.limits() {
		if least, ok := w.least[l.Name]; !ok || l.Capacity < least {
			w.least[l.Name] = l.Capacity
		}
	}
	return w
}

// limits returns all limits of levels, plans and rules, each with the path of the mapping that has it.
func (w *warner) limits() iter.Seq2[string, limiter.Limit] {
	return func(yield func(string, limiter.Limit) bool) {
		of := func(path string, limits *limiter.Limits) bool {
			for i := range limits.Len() {
				if !yield(path, limits.At(i)) {
					return false
				}
			}
			return true
		}
		for _, l := range append(w.file.limits.all(), w.file.plans...) {
			if !of(l.Path, l.Value.limits) {
				return
			}
		}
		for _, t := range w.takes {
			if !of(t.Path+".limits", t.Limits) {
				return
			}
		}
	}
}

// consumesAny reports whether rules consume the name of any limit of a kind.
func (w *warner) consumesAny(is func(limiter.Limit) bool) bool {
	for _, l := range w.limits() {
		if w.consumed[l.Name] && is(l) {
			return true
		}
	}
	return false
}

// amounts warns of rules that take more of a limit than its bucket holds, if the file gives that
// limit. Such a request can never be admitted.
func (w *warner) amounts() {
	for _, t := range w.takes {
		if !t.rule.Overdraw { // with overdraw, an explicit number is a charge
			w.amount(t)
		}
	}
}

func (w *warner) amount(t taking) {
	for _, c := range t.Consume {
		least := c.Constant + c.PerHit
		if c.Estimate != nil {
			least = c.Constant + c.Estimate.Min
		}
		w.holdsLess(t, c.Limit, c.Limit, least)
		for unit := limiter.CalendarHour; unit <= limiter.CalendarMonth; unit++ {
			w.holdsLess(t, c.Limit, c.Limit+"."+unit.String(), least)
		}
	}
}

// holdsLess warns where a limit that a take consumes, or its budget, holds less than the take's least amount.
func (w *warner) holdsLess(t taking, consumed, name string, least int64) {
	if smallest, ok := w.least[name]; !ok || least <= smallest*limiter.Milli {
		return
	}
	for h := range w.file.holders(t, name) {
		limits := h.Value.limits
		n := limits.Find(name)
		if n < 0 || limits.Unlimited(n) || limits.At(n).AdmitsNothing() || least <= limits.At(n).Capacity*limiter.Milli || name != consumed && limits.At(n).BudgetOf() == "" {
			continue
		}
		w.Warn(w.Find(yamlcfg.Join(t.amounts, consumed)), "takes %s or more of %s, and %s holds %s: such a request can never pass; take less, or raise burst there",
			money.Amounts(consumed, yamlcfg.Decimal(least)), consumed, yamlcfg.Join(h.Path, name), money.Amount(name, limits.At(n).Capacity))
		return
	}
}

// holders returns the places of the file whose limit of a name may decide about a take.
func (f *file) holders(t taking, limit string) iter.Seq[yamlcfg.Entry[level]] {
	switch {
	case t.Limits.Find(limit) >= 0:
		return slices.Values([]yamlcfg.Entry[level]{{Path: t.Path + ".limits", Value: level{limits: t.Limits}}})
	case f.planned(t.Plan, limit):
		return f.plansOf(func(name string) bool { return mayBe(t.Plan, name) })
	}
	return func(yield func(yamlcfg.Entry[level]) bool) {
		for _, e := range f.limits.entities {
			if t.isEntity(e.Name) && !f.holdersOf(e.Value, t, yield) {
				return
			}
		}
		known := false // whether the one resource of the take has limits of its own
		for _, l := range f.limits.resources {
			if t.isResource(l.Name) {
				known = known || l.Name == t.Resource && l.Value.limits.Find(limit) >= 0
				if !yield(l) {
					return
				}
			}
		}
		if !known {
			yield(yamlcfg.Entry[level]{Path: "limits.system", Value: f.limits.system})
		}
	}
}

// holdersOf yields the levels and the plan of an entity, and reports whether more are wanted.
func (f *file) holdersOf(e entity, t taking, yield func(yamlcfg.Entry[level]) bool) bool {
	for _, l := range e.limits {
		if (l.Name == limiter.DefaultResource || t.isResource(l.Name)) && !yield(l) {
			return false
		}
	}
	for p := range f.plansOf(func(name string) bool { return name == e.plan }) {
		if !yield(p) {
			return false
		}
	}
	return true
}

// plansOf returns the plans of some names.
func (f *file) plansOf(is func(name string) bool) iter.Seq[yamlcfg.Entry[level]] {
	return func(yield func(yamlcfg.Entry[level]) bool) {
		for _, p := range f.plans {
			if is(p.Name) && !yield(p) {
				return
			}
		}
	}
}

// isEntity reports whether a take may be of the entity, or of one below it.
func (t taking) isEntity(name string) bool {
	return mayBe(t.Entity, name) || slices.ContainsFunc(t.Parents, func(p string) bool { return mayBe(p, name) })
}

// isResource reports whether a take may be of the resource.
func (t taking) isResource(name string) bool {
	if listed := t.listed(); len(listed) > 0 && strings.Contains(t.Resource, "{") {
		return name == descriptor.OtherResource || slices.Contains(listed, name)
	}
	return mayBe(t.Resource, name)
}

// listed returns the list of the take's resources; nil = there is none.
func (t taking) listed() []string {
	if len(t.Resources) > 0 {
		return t.Resources
	}
	return t.domain.Resources
}

// mayBe reports whether a template may give the name, or a name of the kind, judged by its text before
// the first placeholder.
func mayBe(template, name string) bool {
	before, _, placeholder := strings.Cut(template, "{")
	prefix, kind := strings.CutSuffix(name, "*")
	switch {
	case kind && placeholder:
		return strings.HasPrefix(prefix, before) || strings.HasPrefix(before, prefix)
	case kind:
		return strings.HasPrefix(template, prefix)
	case placeholder:
		return strings.HasPrefix(name, before)
	default:
		return template == name
	}
}

// parents warns of parents without limits of their own. They get those of their resource or of the
// system, as their children do. A whole organisation then has the limit of one of its users.
func (w *warner) parents() {
	hasLimits, warned := w.file.limited(), map[string]bool{}
	for _, t := range w.takes {
		for i, parent := range t.Parents {
			kind, _, placeholder := strings.Cut(parent, "{")
			if !placeholder || kind == "" || warned[parent] || hasLimits(parent) || !w.shares(t) {
				continue
			}
			warned[parent] = true
			w.Warn(w.Find(t.parentPath(i)), "no entity %s… under limits.entities has limits: unless stored ones say more, each gets those of its resource or the system, as much as one entity below it", kind)
		}
	}
	for _, e := range w.file.limits.entities {
		parent := e.Value.parent
		if parent == "" || !e.Value.cascade || warned[parent] || hasLimits(parent) || len(w.shared) == 0 {
			continue
		}
		warned[parent] = true
		w.Warn(w.Find(yamlcfg.Join(e.Path, "parent")), "%s has no limits under limits.entities: unless stored ones say more, it gets those of its resource or the system, as much as %s has", parent, e.Name)
	}
}

// shares reports whether a level above entities has a limit that the take consumes.
func (w *warner) shares(t taking) bool {
	return slices.ContainsFunc(t.Consume, func(c descriptor.ConsumeSpec) bool { return w.shared[c.Limit] })
}

// limited returns a function that reports whether the file gives limits to an entity that a template may give. A file
// can name the same template, or another, for each of very many entities.
func (f *file) limited() func(template string) bool {
	var names, kinds []string
	known := map[string]bool{} // by template
	for _, e := range f.limits.entities {
		if len(e.Value.limits) == 0 && e.Value.plan == "" {
			continue
		}
		names = append(names, e.Name)
		if strings.HasSuffix(e.Name, "*") {
			kinds = append(kinds, e.Name)
		} else {
			known[e.Name] = true
		}
	}
	return func(template string) bool {
		has, found := known[template]
		if !found {
			may := kinds
			if strings.Contains(template, "{") {
				may = names
			}
			has = slices.ContainsFunc(may, func(name string) bool { return mayBe(template, name) })
			known[template] = has
		}
		return has
	}
}
