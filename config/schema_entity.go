package config

import (
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// limitsSection is the limits of the file by level.
type limitsSection struct {
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

func (s *limitsSection) schema() yamlcfg.Schema {
	return yamlcfg.Object{Keys: []yamlcfg.Key{
		key("system", "for everything without limits of its own", s.system.schema()),
		key("resources", "by resource", yamlcfg.Dict[level]{Out: &s.resources, What: "a resource", Item: (*level).schema}),
		key("entities", "entities, by their names in rules", yamlcfg.Dict[entity]{Out: &s.entities, What: "an entity", Item: func(e *entity) yamlcfg.Schema { return e.schema() }}),
	}}
}

type entity struct {
	parent  string
	cascade bool
	limits  []yamlcfg.Entry[level]
}

func (e *entity) schema() yamlcfg.Schema {
	return yamlcfg.Object{Title: "entity", Keys: []yamlcfg.Key{
		key("parent", "the entity above; the file need not have it", yamlcfg.Name(&e.parent)),
		key("cascade", "its parent consumes the same", yamlcfg.Bool(&e.cascade)),
		key("limits", "by resource; `_default_` is every other one", yamlcfg.Dict[level]{Out: &e.limits, What: "a resource", Item: (*level).schema}),
	}}
}

// static puts the limits and entities into the fields that the limiter reads.
func (s *limitsSection) static(out *limiter.Static) {
	out.System = s.system.limits
	out.Resources = byName(limitsOf(s.resources))
	out.Entities = make(map[string]limiter.StaticEntity, len(s.entities))
	for _, e := range s.entities {
		out.Entities[e.Name] = limiter.StaticEntity{
			Parent: e.Value.parent, Cascade: e.Value.cascade, Limits: byName(limitsOf(e.Value.limits)),
		}
	}
}

func byName(entries []yamlcfg.Entry[*limiter.Limits]) map[string]*limiter.Limits {
	m := make(map[string]*limiter.Limits, len(entries))
	for _, e := range entries {
		m[e.Name] = e.Value
	}
	return m
}

// limitsOf returns the limits of levels.
func limitsOf(levels []yamlcfg.Entry[level]) []yamlcfg.Entry[*limiter.Limits] {
	all := make([]yamlcfg.Entry[*limiter.Limits], len(levels))
	for i, l := range levels {
		all[i] = yamlcfg.Entry[*limiter.Limits]{Name: l.Name, Path: l.Path, Value: l.Value.limits}
	}
	return all
}
