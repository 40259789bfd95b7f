package migration

import (
	"cmp"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Check moves records that no store can hold to the losses, and puts the rest in the order
// of [Run]: limits of the system and of resources, entities with parents before their
// children, limits of entities; each by name.
func (s *Set) Check() {
	for i := range s.Namespaces {
		ns := &s.Namespaces[i]
		depths := newDepths(ns.Records)
		ns.Records = slices.DeleteFunc(ns.Records, func(r limiter.Stored) bool {
			err := r.Record.Check(r.Ref)
			if err == nil && r.Record.Entity != nil {
				err = limiter.CheckHierarchy(*r.Record.Entity, depths.entity)
			}
			if err == nil {
				return false
			}
			s.Losses = append(s.Losses, Loss{Namespace: ns.Name, Subject: Subject(r.Ref), Problem: "is left out: " + err.Error()})
			return true
		})
		slices.SortFunc(ns.Records, func(a, b limiter.Stored) int {
			return cmp.Or(
				cmp.Compare(rank(a.Ref.Kind), rank(b.Ref.Kind)),
				cmp.Compare(depths.of(a.Ref), depths.of(b.Ref)),
				cmp.Compare(a.Ref.Entity, b.Ref.Entity), cmp.Compare(a.Ref.Resource, b.Ref.Resource),
			)
		})
		slices.SortFunc(ns.Balances, func(a, b Balance) int {
			return cmp.Or(cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Resource, b.Resource))
		})
	}
	slices.SortFunc(s.Namespaces, func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(s.Losses, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Problem, b.Problem))
	})
}

// rank is the place of a kind of records in a run.
func rank(kind limiter.RefKind) int {
	switch kind {
	case limiter.RefSystemLimits:
		return 0
	case limiter.RefResourceLimits:
		return 1
	case limiter.RefEntity:
		return 2
	case limiter.RefEntityLimits:
	}
	return 3
}

// depths says how deep each entity of a namespace is below its root.
type depths map[string]*limiter.Entity

func newDepths(records []limiter.Stored) depths {
	d := make(depths)
	for _, r := range records {
		if r.Record.Entity != nil {
			d[r.Ref.Entity] = r.Record.Entity
		}
	}
	return d
}

func (d depths) entity(id string) (limiter.Entity, bool) {
	e, found := d[id]
	if !found {
		return limiter.Entity{}, false
	}
	return *e, true
}

// of returns the number of ancestors of an entity, at most limiter.MaxLevels; 0 for limits.
func (d depths) of(ref limiter.Ref) int {
	if ref.Kind != limiter.RefEntity {
		return 0
	}
	n := 0
	for e := d[ref.Entity]; e != nil && e.Parent != "" && n < limiter.MaxLevels; e = d[e.Parent] {
		n++
	}
	return n
}
