package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// unreached warns of limits, sets and prices that nothing reaches. Plans get no warning, as stored entities may have them.
// Limits get none beside rules of a control plane and files of other programs, whose names are made.
func (w *warner) unreached(specs []descriptor.DomainSpec) {
	if w.file.partial { // other rules may reach them
		return
	}
	w.unusedSets(specs)
	if len(w.file.prices) > 0 && len(w.file.pricing) == 0 {
		w.Warn(w.Find("prices"), "is not used: no rule consumes by price, such as consume: {usd: price}")
	}
	w.hiddenPrices()
	foreign := func(s descriptor.DomainSpec) bool { return len(s.Tree)+len(s.Limits) > 0 }
	if len(w.takes) == 0 || w.file.cfg.XDS.Address != "" || slices.ContainsFunc(specs, foreign) {
		return
	}
	w.unconsumed()
	w.unreachedResources()
	w.unreachedEntities()
}

// unusedSets warns of sets that no rule names.
func (w *warner) unusedSets(specs []descriptor.DomainSpec) {
	used := make(map[string]bool)
	for i := range specs {
		for j := range specs[i].Rules {
			for _, m := range specs[i].Rules[j].Match {
				used[m.Set] = true
			}
		}
	}
	for _, s := range w.file.sets {
		if !used[s.Name] {
			w.Warn(w.Find(s.Path), "is not used: no rule matches {set: %s}", s.Name)
		}
	}
}

// hiddenPrices warns of prices of a model that an earlier one of prices has for each of its names.
func (w *warner) hiddenPrices() {
	for i, p := range w.file.prices {
		for _, earlier := range w.file.prices[:i] {
			if kinds := sharedKinds(&p.Value, &earlier.Value); len(kinds) > 0 && matchesAll(earlier.Name, p.Name) {
				w.Warn(w.Find(p.Path), "never counts for %s: under prices %q stands before it, and the first model that matches counts; put %q first",
					strings.Join(kinds, ", "), earlier.Name, p.Name)
				break
			}
		}
	}
}

// sharedKinds returns the kinds of tokens that two models have prices for.
func sharedKinds(a, b *price) (kinds []string) {
	for i, of := range a.kinds {
		if of.per != noPrice && b.kinds[i].per != noPrice {
			kinds = append(kinds, of.kind)
		}
	}
	return kinds
}

// matchesAll reports whether a pattern of models matches all that another one does. A '*' of the other is in a '*' then.
func matchesAll(pattern, other string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == other
	}
	other, ok := strings.CutPrefix(other, first)
	for ok && strings.Contains(rest, "*") {
		var part string
		part, rest, _ = strings.Cut(rest, "*")
		_, other, ok = strings.Cut(other, part)
	}
	return ok && strings.HasSuffix(other, rest)
}

// unconsumed warns of limits of a name that no rule consumes, at the first place of each.
func (w *warner) unconsumed() {
	warned := make(map[string]bool)
	for _, at := range append(w.file.limits.all(), w.file.plans...) {
		for i := range at.Value.limits.Len() {
			l := at.Value.limits.At(i)
			of := cmp.Or(limiter.TriedBeside(l.Name), l.BudgetOf(), l.Name)
			if w.consumed[of] || w.consumed[l.Name] || w.file.pricing[of] || warned[of] {
				continue
			}
			warned[of] = true
			known := slices.DeleteFunc(slices.Sorted(maps.Keys(w.consumed)), func(name string) bool { return name[0] != of[0] }) // tpm is no slip of rpm
			w.Warn(w.Find(yamlcfg.Join(at.Path, l.Name)), "limits nothing: no rule consumes %s%s", of, yamlcfg.DidYouMean(of, known))
		}
	}
}

// unreachedResources warns of limits of a resource that no rule takes from.
func (w *warner) unreachedResources() {
	known, reached := make(map[string]bool), make(map[string]bool)
	for _, t := range w.takes {
		w.addResources(t, known)
	}
	check := func(of []yamlcfg.Entry[level], others ...string) {
		for _, l := range of {
			is, seen := reached[l.Name]
			if !seen {
				is = slices.ContainsFunc(w.takes, func(t taking) bool { return t.isResource(l.Name) })
				reached[l.Name] = is
			}
			if !is && !slices.Contains(others, l.Name) {
				w.Warn(w.Find(l.Path), "limits nothing: no rule takes from the resource %s%s", l.Name, yamlcfg.DidYouMean(l.Name, append(slices.Sorted(maps.Keys(known)), others...)))
			}
		}
	}
	check(w.file.limits.resources)
	for _, e := range w.file.limits.entities {
		check(e.Value.limits, limiter.DefaultResource)
	}
}

// addResources adds the resources that a take names.
func (w *warner) addResources(t taking, names map[string]bool) {
	if !strings.Contains(t.Resource, "{") {
		names[t.Resource] = true
		return
	}
	for _, name := range t.listed() {
		names[name] = true
	}
}

// unreachedEntities warns of entities whose names begin as those of a rule do, but for a slip. Other names that no rule
// gives are no mistake: a stored entity may have the entity as its parent.
func (w *warner) unreachedEntities() {
	templates, parents := make(map[string]bool), make(map[string]bool)
	for _, t := range w.takes {
		for _, of := range append([]string{t.Entity}, t.Parents...) {
			templates[of] = true
		}
	}
	for _, e := range w.file.limits.entities {
		parents[e.Value.parent] = true
	}
	known, warned := slices.Sorted(maps.Keys(templates)), make(map[string]bool)
	for _, e := range w.file.limits.entities {
		if parents[e.Name] || slices.ContainsFunc(known, func(of string) bool { return mayBe(of, e.Name) }) {
			continue
		}
		if begin, near := misspelledBegin(e.Name, known); near != "" && !warned[begin] {
			warned[begin] = true
			w.Warn(w.Find(e.Path), "limits nothing, unless a stored entity has it as its parent: no rule takes from an entity %s; did you mean %q?", begin, near)
		}
	}
}

// misspelledBegin returns the begin of a name that is a misspelling of the begin of a template, or of all of it, and the
// right one; "" = none is.
func misspelledBegin(name string, templates []string) (begin, near string) {
	for _, template := range templates {
		right, _, placeholder := strings.Cut(template, "{")
		if begin = name; placeholder {
			begin = sameParts(name, right)
		}
		if right != "" && (limiter.Misspelled(begin, []string{right}) != "" || placeholder && (shortens(begin, right) || shortens(right, begin))) {
			return begin, right
		}
	}
	return "", ""
}

// shortens reports whether the begin of names is a short form of another: usr/ of user/.
func shortens(short, long string) bool {
	if short == "" || short[0] != long[0] || len(short) >= len(long) {
		return false
	}
	for i := range len(long) {
		if short != "" && short[0] == long[i] {
			short = short[1:]
		}
	}
	return short == ""
}

// sameParts returns the begin of a name with as many parts as the begin of a template has: of user/ada one, as of user/.
func sameParts(name, of string) string {
	end, last := 0, of[max(0, len(of)-1):]
	if last == "" {
		return name
	}
	for range strings.Count(of, last) {
		i := strings.Index(name[end:], last)
		if i < 0 {
			return name
		}
		end += i + len(last)
	}
	return name[:end]
}
