package budget

import (
	"maps"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Bucket is the bucket whose usage is compared. No part is "".
type Bucket struct {
	Namespace, Entity, Resource string

	Shared bool // its budget is not one of the entity alone, see [Event]
}

// Places returns the places for the limits of an entity and a resource, the most specific first: of
// the entity for the resource, of the entity, of the resource, of the system.
func Places(entity, resource string) [4]limiter.Ref {
	return [...]limiter.Ref{
		limiter.EntityLimitsRef(entity, resource), limiter.EntityLimitsRef(entity, limiter.DefaultResource),
		limiter.ResourceLimitsRef(resource), limiter.SystemLimitsRef(),
	}
}

// Stored are the limits that are stored at each of the [Places] of a bucket. The zero value is that of
// none.
type Stored [4]StoredLimits

// StoredLimits are the limits that are stored at one place.
type StoredLimits struct {
	There   bool             // else there are none
	Budgets *limiter.Budgets // of them
}

// Set is an immutable set of the budgets of a configuration, by the place of their limits. A nil
// Set is empty.
type Set struct {
	at map[limiter.Ref]*limiter.Budgets
}

// NewSet returns the set of the budgets at some places.
func NewSet(at map[limiter.Ref]*limiter.Budgets) *Set {
	return &Set{maps.Clone(at)}
}

// At returns the budgets of a place; nil = none.
func (s *Set) At(place limiter.Ref) *limiter.Budgets {
	if s == nil {
		return nil
	}
	return s.at[place]
}

// Len returns the number of budgets.
func (s *Set) Len() (n int) {
	for _, budgets := range s.All() {
		n += budgets.Len()
	}
	return n
}

// All returns the places and their budgets, in no order.
func (s *Set) All() func(yield func(limiter.Ref, *limiter.Budgets) bool) {
	if s == nil {
		return func(func(limiter.Ref, *limiter.Budgets) bool) {}
	}
	return maps.All(s.at)
}

// Of returns the budget of a limit of a bucket in a window: that of the most specific of the
// [Places] that has one. At each place stored limits replace those of the configuration, with their
// budgets. Of sets of.Shared.
func (s *Set) Of(of *Bucket, limit string, w limiter.UsageWindow, stored *Stored) (b limiter.Budget, ok bool) {
	for i, place := range Places(of.Entity, of.Resource) {
		budgets := stored[i].Budgets
		if !stored[i].There {
			budgets = s.At(place)
		}
		if b, ok := budgets.Of(limit, w); ok {
			of.Shared = place.Entity == ""
			return b, true
		}
	}
	return limiter.Budget{}, false
}
