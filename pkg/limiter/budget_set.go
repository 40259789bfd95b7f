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

// Of returns the budget of a limit of a bucket in a window: that of the most specific of the
// [BudgetPlaces] that has one. At each place a stored limit replaces that of its name in the configuration,
// with its budgets. Of sets of.Shared.
func (s *BudgetSet) Of(of *BudgetBucket, limit string, w UsageWindow, stored *StoredBudgets) (b Budget, ok bool) {
	for i, place := range BudgetPlaces(of.Entity, of.Resource) {
		if place.Kind == RefResourceLimits {
			if b, ok := s.ofKind(of, limit, w); ok {
				of.Shared = true
				return b, true
			}
		}
		budgets := stored[i].Budgets
		if stored[i].Limits.Find(limit) < 0 {
			budgets = s.At(place)
		}
		if b, ok := budgets.Of(limit, w); ok {
			of.Shared = place.Entity == ""
			return b, true
		}
	}
	return Budget{}, false
}
