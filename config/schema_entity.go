package config

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limitsSection is the limits of the file by level.
type limitsSection struct {
	system    level
	resources []entry[level]
	entities  []entry[entity]
}

// level is the limits, and their budgets, at one place of the file.
type level struct {
	limits  *limiter.Limits
	budgets *limiter.Budgets
}

func (l *level) schema() schema { return limitsSchema{&l.limits, &l.budgets} }

func (s *limitsSection) schema() schema {
	return object{keys: []key{
		{"system", s.system.schema()},
		{"resources", dict[level]{out: &s.resources, what: "a resource", item: (*level).schema}},
		{"entities", dict[entity]{out: &s.entities, what: "an entity", item: func(e *entity) schema { return e.schema() }}},
	}}
}

type entity struct {
	parent  string
	cascade bool
	limits  []entry[level]
}

func (e *entity) schema() schema {
	return object{title: "entity", keys: []key{
		{"parent", name(&e.parent)},
		{"cascade", boolean(&e.cascade)},
		{"limits", dict[level]{out: &e.limits, what: "a resource", item: (*level).schema}},
	}}
}

// static puts the limits and entities into the fields that the limiter reads.
func (s *limitsSection) static(out *limiter.Static) {
	out.System = s.system.limits
	out.Resources = byName(limitsOf(s.resources))
	out.Entities = make(map[string]limiter.StaticEntity, len(s.entities))
	for _, e := range s.entities {
		out.Entities[e.name] = limiter.StaticEntity{
			Parent: e.value.parent, Cascade: e.value.cascade, Limits: byName(limitsOf(e.value.limits)),
		}
	}
}

func byName(entries []entry[*limiter.Limits]) map[string]*limiter.Limits {
	m := make(map[string]*limiter.Limits, len(entries))
	for _, e := range entries {
		m[e.name] = e.value
	}
	return m
}

// limitsOf returns the limits of levels.
func limitsOf(levels []entry[level]) []entry[*limiter.Limits] {
	all := make([]entry[*limiter.Limits], len(levels))
	for i, l := range levels {
		all[i] = entry[*limiter.Limits]{l.name, l.path, l.value.limits}
	}
	return all
}
