package config

import (
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// owner is an entity that a take may have, or one of a kind.
type owner struct {
	id    string
	shown string
	own   []yamlcfg.Entry[level] // by resource
}

// room refuses limits that rules consume, and for which a bucket has no room. They would not count.
func (w *warner) room() {
	snapshot, err := limiter.NewSnapshot(w.file.cfg.Static)
	if err != nil { // it is reported
		return
	}
	names := make(map[string]bool)
	snapshot.AddNames(names)
	for _, p := range w.file.plans {
		p.Value.limits.AddNames(names)
	}
	if len(names) <= limiter.MaxLimits {
		return
	}
	plans := w.storedPlans()
	for _, t := range w.takes {
		reported := make(map[string]bool)
		for _, plan := range plans {
			for _, o := range w.file.owners(t) {
				for _, resource := range w.file.resourcesOf(t, o) {
					w.roomOf(snapshot, t, o, plan, resource, reported)
				}
			}
		}
	}
}

// roomOf is room for one bucket of a take. Each limit of the take is reported once.
func (w *warner) roomOf(snapshot *limiter.Snapshot, t taking, o owner, plan, resource string, reported map[string]bool) {
	stored := limiter.Record{Entity: &limiter.Entity{ID: o.id, Plan: plan}}
	dropped := snapshot.Dropped(o.id, resource, limiter.Stored{Ref: limiter.EntityRef(o.id), Record: stored})
	for _, l := range dropped {
		of := w.consumes(t, l.Limit)
		if of == "" || reported[of] {
			continue
		}
		reported[of] = true
		bucket := "entity " + o.shown
		if plan != "" {
			bucket += " with plan " + plan
		}
		if resource != "" {
			bucket += ", for resource " + resource
		}
		w.Fail(w.Find(yamlcfg.Join(t.amounts, of)), "has no room: %s: there are %d limits, and a bucket has at most %d, so that %s of %s would not count; remove other names from these levels",
			bucket, limiter.MaxLimits+len(dropped), limiter.MaxLimits, l.Limit.Name, l.From())
	}
}

// consumes returns the limit with which a take consumes one of the ordinary bucket; "" = it does not.
func (w *warner) consumes(t taking, l limiter.Limit) string {
	for _, c := range t.Consume {
		own := t.Limits.Find(c.Limit) >= 0 || w.file.planned(t.Plan, c.Limit) || t.rule.Override == c.Limit
		if !own && (l.Name == c.Limit || l.BudgetOf() == c.Limit || limiter.TriedBeside(l.Name) == c.Limit) {
			return c.Limit
		}
	}
	return ""
}

// owners returns the entities of the file that a take and its parents may have, and one of each kind. The first part
// of a template stands for its other entities.
func (f *file) owners(t taking) (all []owner) {
	inFile, seen := make(map[string]entity), make(map[string]bool)
	add := func(o owner) {
		if !seen[o.shown] {
			seen[o.shown] = true
			all = append(all, o)
		}
	}
	for _, e := range f.limits.entities {
		inFile[e.Name] = e.Value
		has := len(e.Value.limits) > 0 || e.Value.plan != "" || e.Value.cascade // others are as the kind
		if has && slices.ContainsFunc(t.templates(), func(template string) bool { return mayBe(template, e.Name) }) {
			add(owner{strings.TrimSuffix(e.Name, "*"), e.Name, e.Value.limits})
		}
	}
	for _, template := range t.templates() {
		before, _, placeholder := strings.Cut(template, "{")
		shown := before
		if placeholder {
			shown += "*"
		}
		add(owner{id: before, shown: shown})
	}
	for i := 0; i < len(all); i++ { // it grows
		if below := inFile[all[i].shown]; below.cascade && below.parent != "" {
			add(owner{below.parent, below.parent, inFile[below.parent].limits})
		}
	}
	return all
}

// templates are those of the entity and of its parents.
func (t taking) templates() []string { return append([]string{t.Entity}, t.Parents...) }

// resourcesOf returns the resources for which a take may have limits, and "" for all others.
func (f *file) resourcesOf(t taking, o owner) []string {
	if !strings.Contains(t.Resource, "{") {
		return []string{t.Resource}
	}
	all := []string{""}
	add := func(levels []yamlcfg.Entry[level]) {
		for _, l := range levels {
			if l.Name != limiter.DefaultResource && t.isResource(l.Name) {
				all = append(all, l.Name)
			}
		}
	}
	add(f.limits.resources)
	add(o.own)
	for _, e := range f.limits.entities {
		if strings.HasSuffix(e.Name, "*") {
			add(e.Value.limits)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// storedPlans returns the plans that only stored entities can have, and before them "", which is the plan that the
// file gives.
func (w *warner) storedPlans() []string {
	all := []string{""}
	for _, p := range w.file.plans {
		given := slices.ContainsFunc(w.file.limits.entities, func(e yamlcfg.Entry[entity]) bool { return e.Value.plan == p.Name }) ||
			slices.ContainsFunc(w.takes, func(t taking) bool { return t.Plan != "" && mayBe(t.Plan, p.Name) })
		if !given {
			all = append(all, p.Name)
		}
	}
	return all
}
