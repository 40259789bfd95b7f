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
	r := rooms{warner: w, snapshot: snapshot, plans: w.storedPlans(), dropped: make(map[bucket][]limiter.EffectiveLimit)}
	for _, e := range w.file.limits.entities {
		if strings.HasSuffix(e.Name, "*") {
			r.kinds = append(r.kinds, e)
		}
	}
	for _, t := range w.takes {
		r.take(t)
	}
}

// bucket is an ordinary one of the file.
type bucket struct{ entity, plan, resource string }

// rooms finds the limits of the file for which buckets have no room. Entities and resources with limits of the same
// names are as one of them: a file may have thousands.
type rooms struct {
	*warner

	snapshot *limiter.Snapshot
	plans    []string
	kinds    []yamlcfg.Entry[entity]
	dropped  map[bucket][]limiter.EffectiveLimit // as far as they are known
}

// take checks the buckets of a take. Each of its limits is reported once.
func (r *rooms) take(t taking) {
	reported := make(map[string]bool)
	owners := r.owners(t)
	for _, plan := range r.plans {
		for _, o := range owners {
			for _, resource := range r.resources(t, o) {
				r.report(t, o, bucket{o.id, plan, resource}, reported)
			}
		}
	}
}

// report refuses the limits of a take for which a bucket has no room.
func (r *rooms) report(t taking, o owner, b bucket, reported map[string]bool) {
	dropped, known := r.dropped[b]
	if !known {
		stored := limiter.Record{Entity: &limiter.Entity{ID: b.entity, Plan: b.plan}}
		dropped = r.snapshot.Dropped(b.entity, b.resource, limiter.Stored{Ref: limiter.EntityRef(b.entity), Record: stored})
		r.dropped[b] = dropped
	}
	for _, l := range dropped {
		of := r.consumes(t, l.Limit)
		if of == "" || reported[of] {
			continue
		}
		reported[of] = true
		text := "entity " + o.shown
		if b.plan != "" {
			text += " with plan " + b.plan
		}
		if b.resource != "" {
			text += ", for resource " + b.resource
		}
		r.Fail(r.Find(yamlcfg.Join(t.amounts, of)), "has no room: %s: there are %d limits, and a bucket has at most %d, so that %s of %s would not count; remove other names from these levels",
			text, limiter.MaxLimits+len(dropped), limiter.MaxLimits, l.Limit.Name, l.From())
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

// owners returns the entities of the file from which a take may take, and one of each kind. The first part of a
// template stands for its other entities.
func (r *rooms) owners(t taking) (all []owner) {
	inFile, seen := make(map[string]entity, len(r.file.limits.entities)), make(map[string]bool)
	for _, e := range r.file.limits.entities {
		inFile[e.Name] = e.Value
	}
	add := func(o owner) {
		for {
			in := inFile[o.shown]
			if like := r.like(o, in.plan); !seen[like] {
				seen[like] = true
				all = append(all, o)
			}
			if !in.cascade || seen[in.parent] || in.parent == "" {
				return
			}
			seen[in.parent] = true // it is added now
			o = owner{in.parent, in.parent, inFile[in.parent].limits}
		}
	}
	templates := append([]string{t.Entity}, t.Parents...)
	for _, e := range r.file.limits.entities {
		if slices.ContainsFunc(templates, func(template string) bool { return mayBe(template, e.Name) }) {
			add(owner{strings.TrimSuffix(e.Name, "*"), e.Name, e.Value.limits})
		}
	}
	for _, template := range templates {
		before, _, placeholder := strings.Cut(template, "{")
		shown := before
		if placeholder {
			shown += "*"
		}
		add(owner{before, shown, inFile[shown].limits})
	}
	return all
}

// like returns a text that owners of the same kind, plan and names have in common.
func (r *rooms) like(o owner, plan string) string {
	kind := ""
	for _, k := range r.kinds {
		if prefix := strings.TrimSuffix(k.Name, "*"); strings.HasPrefix(o.id, prefix) && len(prefix) >= len(kind) {
			kind = k.Name
		}
	}
	text := append(make([]string, 0, 2+2*len(o.own)), kind, plan)
	for _, l := range o.own {
		text = append(text, l.Name, namesOf(l.Value.limits))
	}
	return strings.Join(text, "\n")
}

// namesOf joins the names of limits.
func namesOf(limits *limiter.Limits) string {
	names := make([]string, limits.Len())
	for i := range names {
		names[i] = limits.At(i).Name
	}
	return strings.Join(names, "\n")
}

// resources returns the resources for which a take may have limits, and "" for all others.
func (r *rooms) resources(t taking, o owner) []string {
	if !strings.Contains(t.Resource, "{") {
		return []string{t.Resource}
	}
	all, seen := []string{""}, map[string]bool{limiter.DefaultResource: true}
	add := func(l yamlcfg.Entry[level], like string) {
		if !seen[l.Name] && !seen[like] && t.isResource(l.Name) {
			seen[l.Name], seen[like] = true, true
			all = append(all, l.Name)
		}
	}
	for _, l := range o.own {
		add(l, l.Name)
	}
	for _, k := range r.kinds {
		for _, l := range k.Value.limits {
			add(l, l.Name)
		}
	}
	for _, l := range r.file.limits.resources {
		add(l, "\n"+namesOf(l.Value.limits))
	}
	return all
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
