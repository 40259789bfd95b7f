package config

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limitsSection is the limits that the file gives by level.
type limitsSection struct {
	system    *limiter.Limits
	resources []entry[*limiter.Limits]
	entities  []entry[entity]
}

func (s *limitsSection) schema() schema {
	return object{keys: []key{
		{"system", limits(&s.system)},
		{"resources", dict[*limiter.Limits]{out: &s.resources, what: "a resource", item: limits}},
		{"entities", dict[entity]{out: &s.entities, what: "an entity", item: func(e *entity) schema { return e.schema() }}},
	}}
}

type entity struct {
	parent  string
	cascade bool
	limits  []entry[*limiter.Limits]
}

func (e *entity) schema() schema {
	return object{title: "entity", keys: []key{
		{"parent", name(&e.parent)},
		{"cascade", boolean(&e.cascade)},
		{"limits", dict[*limiter.Limits]{out: &e.limits, what: "a resource", item: limits}},
	}}
}

// static puts the limits and entities where the limiter looks for them.
func (s *limitsSection) static(out *limiter.Static) {
	out.System = s.system
	out.Resources = byName(s.resources)
	out.Entities = make(map[string]limiter.StaticEntity, len(s.entities))
	for _, e := range s.entities {
		out.Entities[e.name] = limiter.StaticEntity{
			Parent: e.value.parent, Cascade: e.value.cascade, Limits: byName(e.value.limits),
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
