package limiter

import (
	"maps"
	"slices"
	"sync/atomic"
)

// Static is the limits and entities of a configuration file. At each level stored ones win over it.
// It applies to every namespace.
type Static struct {
	System        *Limits
	Resources     map[string]*Limits
	Plans         map[string]*Limits      // by name; an unknown plan has none
	Entities      map[string]StaticEntity // by ID
	Kinds         []Kind                  // at most MaxKinds
	OnUnavailable Policy                  // default Allow
	LocalShare    int64                   // for Local, thousandths of each limit, 1 to 1000; default 1000
}

// StaticEntity is an entity of a configuration file.
type StaticEntity struct {
	Parent  string
	Cascade bool
	Plan    string             // a name of Static.Plans; "" = that of the kind
	Limits  map[string]*Limits // by resource, or DefaultResource
}

// limits returns the limits for a resource. Most entities have none, and need no lookup.
func (e *StaticEntity) limits(resource string) *Limits {
	if len(e.Limits) == 0 {
		return nil
	}
	return e.Limits[resource]
}

// planOf returns the name of the plan of an entity, with its stored record; "" for that of its kind.
func (e *StaticEntity) planOf(stored *Entity) string {
	if stored != nil && stored.Plan != "" {
		return stored.Plan
	}
	return e.Plan
}

func (s *Static) entity(id string) (Entity, bool) {
	e, ok := s.Entities[id]
	return Entity{ID: id, Parent: e.Parent, Cascade: e.Cascade}, ok
}

// Snapshot is a valid [Static]. A caller with its own rules passes it along with each request
// ([Request.Snapshot]). So no call sees the rules of one configuration with the limits of another.
type Snapshot struct {
	static  Static
	kinds   kinds
	one     bool        // the only limits are those of the system, and they are in a bucket for all time
	retired atomic.Bool // another is in force
}

// NewSnapshot returns a snapshot of s, which must not be changed any more. It refuses, with
// [ErrInvalid], a cycle and a chain of more than [MaxLevels].
func NewSnapshot(s Static) (*Snapshot, error) {
	for id, e := range s.Entities {
		if err := CheckHierarchy(Entity{ID: id, Parent: e.Parent}, s.entity); err != nil {
			return nil, err
		}
	}
	all, err := newKinds(s.Kinds)
	if err != nil {
		return nil, err
	}
	one := len(s.Entities)+len(s.Plans)+len(s.Kinds)+len(s.Resources) == 0 && s.System.Len() > 0 && !s.System.apart
	return &Snapshot{static: s, kinds: all, one: one}, nil
}

// Static returns the limits and entities of the snapshot. Its maps are shared, and must not be changed.
func (s *Snapshot) Static() Static { return s.static }

// Plans returns the names of the plans, in order.
func (s *Snapshot) Plans() []string { return slices.Sorted(maps.Keys(s.static.Plans)) }

// AddNames adds the names of the limits of the snapshot, of each level.
func (s *Snapshot) AddNames(names map[string]bool) {
	s.static.System.AddNames(names)
	for _, limits := range s.static.Resources {
		limits.AddNames(names)
	}
	for _, e := range s.static.Entities {
		for _, limits := range e.Limits {
			limits.AddNames(names)
		}
	}
	for _, k := range s.static.Kinds {
		for _, limits := range k.Limits {
			limits.AddNames(names)
		}
	}
}

// generationOf returns the generation of limits from the snapshot, given the one that was read
// before. A retired snapshot's limits count as the oldest. They must not count as new because the
// change that retired them has raised the generation since.
func (s *Snapshot) generationOf(read uint64) uint64 {
	if s.retired.Load() {
		return 0
	}
	return read
}
