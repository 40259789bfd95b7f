package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// levels is the limits of the file by level.
type levels struct {
	system    level
	resources []yamlcfg.Entry[level]
	entities  []yamlcfg.Entry[entity]
}

// level is the limits, and their budgets, at one place of the file.
type level struct {
	limits  *limiter.Limits
	budgets *limiter.Budgets
}

func (l *level) schema() yamlcfg.Schema { return limitsSchema{&l.limits, &l.budgets} }

// plan is limits without budgets.
func (l *level) plan() yamlcfg.Schema { return limitsSchema{out: &l.limits} }

// entity is an entity, or a kind of entities if its name ends in '*'.
type entity struct {
	parent  string
	cascade bool
	plan    string
	limits  []yamlcfg.Entry[level]
}

func (s *levels) schema() yamlcfg.Schema {
	return keys(
		key("system", "for everything without own limits", s.system.schema()),
		key("resources", "by resource", yamlcfg.Dict[level]{Out: &s.resources, What: "a resource", Item: (*level).schema}),
		key("entities", "entities and [kinds](#kinds-and-plans) of them, such as `user/*`", yamlcfg.Dict[entity]{Out: &s.entities, What: "an entity", Item: (*entity).schema}),
	)
}

func (e *entity) schema() yamlcfg.Schema {
	return yamlcfg.Object{Title: "entity", Keys: []yamlcfg.Key{
		key("parent", "entity above; the file need not have it", yamlcfg.Name(&e.parent)),
		key("cascade", "its parent consumes the same", yamlcfg.Bool(&e.cascade)),
		key("plan", "a name under `plans`: [its limits](#kinds-and-plans)", yamlcfg.Name(&e.plan)),
		key("limits", "by resource; `_default_` is every other one", yamlcfg.Dict[level]{Out: &e.limits, What: "a resource", Item: (*level).schema}),
	}}
}

// static puts the limits and entities into the fields that the limiter reads.
func (s *levels) static(out *limiter.Static) {
	out.System = s.system.limits
	out.Resources = byName(s.resources)
	out.Entities = make(map[string]limiter.StaticEntity, len(s.entities))
	for _, e := range s.entities {
		if prefix, kind := strings.CutSuffix(e.Name, "*"); kind {
			out.Kinds = append(out.Kinds, limiter.Kind{Prefix: prefix, Plan: e.Value.plan, Limits: byName(e.Value.limits)})
			continue
		}
		out.Entities[e.Name] = limiter.StaticEntity{Parent: e.Value.parent, Cascade: e.Value.cascade, Plan: e.Value.plan, Limits: byName(e.Value.limits)}
	}
}

// checkEntities refuses kinds with what only an entity can have, and unknown plans.
func (f *file) checkEntities(r *yamlcfg.Report) {
	kinds, plans := 0, byName(f.plans)
	for _, e := range f.limits.entities {
		if strings.Contains(strings.TrimSuffix(e.Name, "*"), "*") {
			r.Fail(r.Find(e.Path), "has a '*' before its end: a kind of entities is what its names begin with, such as user/*")
		}
		if strings.HasSuffix(e.Name, "*") {
			kinds++
			for _, k := range []struct {
				name  string
				given bool
			}{{"parent", e.Value.parent != ""}, {"cascade", e.Value.cascade}} {
				if k.given {
					r.Fail(r.Find(yamlcfg.Join(e.Path, k.name)), "belongs to one entity, and %s is a kind of them: give it in the rule, or to the entity", e.Name)
				}
			}
		}
		if e.Value.plan != "" && plans[e.Value.plan] == nil {
			r.Fail(r.Find(yamlcfg.Join(e.Path, "plan")), "%q is not a name under plans; there is %s", e.Value.plan, strings.Join(slices.Sorted(maps.Keys(plans)), ", "))
		}
	}
	if kinds > limiter.MaxKinds {
		r.Fail(r.Find("limits.entities"), "has %d kinds of entities; there are at most %d", kinds, limiter.MaxKinds)
	}
}

func byName(all []yamlcfg.Entry[level]) map[string]*limiter.Limits {
	m := make(map[string]*limiter.Limits, len(all))
	for _, l := range all {
		m[l.Name] = l.Value.limits
	}
	return m
}

// all returns the limits at every level, each with its path.
func (s *levels) all() []yamlcfg.Entry[level] {
	all := append([]yamlcfg.Entry[level]{{Path: "limits.system", Value: s.system}}, s.resources...)
	for _, e := range s.entities {
		all = append(all, e.Value.limits...)
	}
	return all
}

// budgets returns the budgets of the file by their place; nil for none.
func (s *levels) budgets() *limiter.BudgetSet {
	at := map[limiter.Ref]*limiter.Budgets{limiter.SystemLimitsRef(): s.system.budgets}
	for _, r := range s.resources {
		at[limiter.ResourceLimitsRef(r.Name)] = r.Value.budgets
	}
	for _, e := range s.entities {
		for _, r := range e.Value.limits {
			at[limiter.EntityLimitsRef(e.Name, r.Name)] = r.Value.budgets
		}
	}
	maps.DeleteFunc(at, func(_ limiter.Ref, b *limiter.Budgets) bool { return b == nil })
	if len(at) == 0 {
		return nil
	}
	return limiter.NewBudgetSet(at)
}

// checkHierarchy refuses cycles and chains that are too long. It warns of entities that cascade
// without a parent.
func checkHierarchy(r *yamlcfg.Report, entities []yamlcfg.Entry[entity]) {
	h := hierarchy{Report: r, entities: entities, index: make(map[string]int, len(entities)), levels: make([]int, len(entities))}
	for i, e := range entities {
		h.index[e.Name] = i
		if e.Value.cascade && e.Value.parent == "" {
			r.Warn(r.Find(yamlcfg.Join(e.Path, "cascade")), "has no effect, as the entity has no parent here: add parent, or remove cascade")
		}
	}
	for _, e := range entities {
		h.level(e.Name)
	}
}

// The states of an entity whose level is not known.
const (
	levelUnknown = 0
	levelOpen    = -1 // the chain above it is being followed
	levelCycle   = -2 // the chain runs into a cycle
)

type hierarchy struct {
	*yamlcfg.Report

	entities []yamlcfg.Entry[entity]
	index    map[string]int
	levels   []int
}

// level returns the number of entities in the chain from id upwards.
func (h *hierarchy) level(id string) int {
	i, ok := h.index[id]
	if !ok {
		return 1 // an entity that is not in the file ends the chain
	}
	if h.levels[i] == levelOpen {
		h.Fail(h.Find(yamlcfg.Join(h.entities[i].Path, "parent")), "the entities are one another's parents, %s: break the cycle", h.chain(i, id))
		return levelCycle
	}
	if h.levels[i] != levelUnknown {
		return h.levels[i]
	}
	level := 1
	if parent := h.entities[i].Value.parent; parent != "" {
		h.levels[i] = levelOpen
		level = h.level(parent)
		if level != levelCycle {
			level++
		}
	}
	if level == limiter.MaxLevels+1 {
		h.Fail(h.Find(yamlcfg.Join(h.entities[i].Path, "parent")), "the chain has more than %d entities, %s: make it shorter", limiter.MaxLevels, h.chain(i, ""))
	}
	h.levels[i] = level
	return level
}

// chain returns the names from entity i upwards, to the end of the chain or to last. It returns at
// most one more than a chain may have.
func (h *hierarchy) chain(i int, last string) string {
	names := []string{h.entities[i].Name}
	for len(names) <= limiter.MaxLevels {
		parent := h.entities[i].Value.parent
		if parent == "" {
			break
		}
		names = append(names, parent)
		next, ok := h.index[parent]
		if !ok || parent == last {
			break
		}
		i = next
	}
	return strings.Join(names, " → ")
}
