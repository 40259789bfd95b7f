package limiter

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// BudgetBucket is the bucket whose usage is compared. No part is "".
type BudgetBucket struct {
	Namespace, Entity, Resource string

	Shared bool // its budget is not one of the entity alone, see [BudgetEvent]
}

// BudgetPlaces returns the places for the limits of an entity and a resource, the most specific first: of
// the entity for the resource, of the entity, of the resource, of the system.
func BudgetPlaces(entity, resource string) [4]Ref {
	return [...]Ref{
		EntityLimitsRef(entity, resource), EntityLimitsRef(entity, DefaultResource),
		ResourceLimitsRef(resource), SystemLimitsRef(),
	}
}

// StoredBudgets are the limits that are stored at each of the [BudgetPlaces] of a bucket. The zero value is that of
// none.
type StoredBudgets [4]StoredBudgetLimits

// StoredBudgetLimits are the limits that are stored at one place.
type StoredBudgetLimits struct {
	Limits  *Limits  // nil = there are none
	Budgets *Budgets // of them
}

// storedSource returns the source of the limits that are stored at one of the [BudgetPlaces]. That of the file's
// comes next after it.
func storedSource(place int) Source {
	return [...]Source{SourceEntity, SourceEntityDefault, SourceResource, SourceSystem}[place]
}

// quota returns the tokens and the place of a quota: the most specific one that is the budget of a limit in a window.
// [SourceNone] = there is none.
func (s *StoredBudgets) quota(limit string, w UsageWindow) (int64, Source) {
	for i, at := range s {
		n := at.Limits.Find(limit + "." + w.String())
		if n < 0 {
			continue
		}
		if l := at.Limits.At(n); l.BudgetOf() == limit {
			return l.Capacity, storedSource(i)
		}
	}
	return 0, SourceNone
}

// BudgetSet is an immutable set of the budgets of a configuration, by the place of their limits. The
// entity of a place that ends in '*' is a [Kind]. A nil Set is empty.
type BudgetSet struct {
	at    map[Ref]*Budgets
	kinds []string // prefixes, the longest first
}

// NewBudgetSet returns the set of the budgets at some places.
func NewBudgetSet(at map[Ref]*Budgets) *BudgetSet {
	s := &BudgetSet{at: maps.Clone(at)}
	for place := range at {
		if prefix, kind := strings.CutSuffix(place.Entity, "*"); kind && !slices.Contains(s.kinds, prefix) {
			s.kinds = append(s.kinds, prefix)
		}
	}
	slices.SortFunc(s.kinds, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return s
}

// ofKind returns the budget that a kind of the bucket's entity has.
func (s *BudgetSet) ofKind(of *BudgetBucket, limit string, w UsageWindow) (Budget, bool) {
	if s == nil {
		return Budget{}, false
	}
	for _, prefix := range s.kinds {
		if !strings.HasPrefix(of.Entity, prefix) {
			continue
		}
		for _, resource := range []string{of.Resource, DefaultResource} {
			if b, ok := s.at[EntityLimitsRef(prefix+"*", resource)].Of(limit, w); ok {
				return b, true
			}
		}
	}
	return Budget{}, false
}

// At returns the budgets of a place; nil = none.
func (s *BudgetSet) At(place Ref) *Budgets {
	if s == nil {
		return nil
	}
	return s.at[place]
}

// Len returns the number of budgets.
func (s *BudgetSet) Len() (n int) {
	for _, budgets := range s.All() {
		n += budgets.Len()
	}
	return n
}

// All returns the places and their budgets, in no order.
func (s *BudgetSet) All() func(yield func(Ref, *Budgets) bool) {
	if s == nil {
		return func(func(Ref, *Budgets) bool) {}
	}
	return maps.All(s.at)
}

// Of returns the budget of a limit of a bucket in a window, and its place: the most specific of the
// [BudgetPlaces] that has one; [SourceNone] = there is none. At each place a stored limit replaces that of its
// name in the configuration, with its budgets. A stored quota that is this budget, as usd.month is one of usd,
// has its tokens, unless a less specific place has the quota. Of sets of.Shared.
func (s *BudgetSet) Of(of *BudgetBucket, limit string, w UsageWindow, stored *StoredBudgets) (Budget, Source) {
	b, source := s.nearest(of, limit, w, stored)
	if tokens, by := stored.quota(limit, w); by != SourceNone && by <= source {
		b.Tokens, source = tokens, by
	}
	if b.Tokens == 0 { // nothing can be used
		return Budget{}, SourceNone
	}
	of.Shared = source >= SourceKindConfig
	return b, source
}

// nearest is Of without quotas.
func (s *BudgetSet) nearest(of *BudgetBucket, limit string, w UsageWindow, stored *StoredBudgets) (Budget, Source) {
	for i, place := range BudgetPlaces(of.Entity, of.Resource) {
		if place.Kind == RefResourceLimits {
			if b, ok := s.ofKind(of, limit, w); ok {
				return b, SourceKindConfig
			}
		}
		budgets, source := stored[i].Budgets, storedSource(i)
		if stored[i].Limits.Find(limit) < 0 {
			budgets, source = s.At(place), source+1 // from the file
		}
		if b, ok := budgets.Of(limit, w); ok {
			return b, source
		}
	}
	return Budget{}, SourceNone
}
