package budget

import (
	"fmt"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// MaxBudgets is the greatest number of budgets of a set.
const MaxBudgets = 100_000

// Set is an immutable set of budgets. A nil Set is empty.
type Set struct {
	budgets map[place]int64 // tokens
	limits  map[string]bool
	windows []limiter.UsageWindow // in order
}

// place is all of a budget but its amount.
type place struct {
	limit  string
	window limiter.UsageWindow
	Selector
}

// NewSet returns a set. It refuses with [limiter.ErrInvalid] a budget that [Budget.Check] refuses,
// two for the same window and buckets, and more than [MaxBudgets].
func NewSet(budgets ...Budget) (*Set, error) {
	if len(budgets) > MaxBudgets {
		return nil, fmt.Errorf("%w: %d budgets; there are at most %d", limiter.ErrInvalid, len(budgets), MaxBudgets)
	}
	s := &Set{budgets: make(map[place]int64, len(budgets)), limits: make(map[string]bool)}
	for i := range budgets {
		b := &budgets[i]
		if err := b.Check(); err != nil {
			return nil, err
		}
		at := place{b.Limit, b.Window, b.Selector}
		if s.budgets[at] != 0 {
			return nil, fmt.Errorf("%w: limit %s has two budgets for each %v of the same buckets", limiter.ErrInvalid, b.Limit, b.Window)
		}
		s.budgets[at], s.limits[b.Limit] = b.Tokens, true
		if !slices.Contains(s.windows, b.Window) {
			s.windows = append(s.windows, b.Window)
		}
	}
	slices.Sort(s.windows)
	return s, nil
}

// Len returns the number of budgets.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.budgets)
}

// Windows returns the windows of the budgets, the shortest first.
func (s *Set) Windows() []limiter.UsageWindow {
	if s == nil {
		return nil
	}
	return s.windows
}

// Has reports whether there is a budget for a limit of the name at all.
func (s *Set) Has(limit string) bool { return s != nil && s.limits[limit] }

// Of returns the budget of a limit of a bucket in a window: of those that are for the bucket, one for
// its entity stands before one for its resource, and that before one for its namespace. of has no part that is "".
func (s *Set) Of(of Selector, limit string, w limiter.UsageWindow) (b Budget, ok bool) {
	if !s.Has(limit) {
		return Budget{}, false
	}
	for _, entity := range [...]string{of.Entity, ""} {
		for _, resource := range [...]string{of.Resource, ""} {
			for _, namespace := range [...]string{of.Namespace, ""} {
				selector := Selector{namespace, entity, resource}
				if tokens := s.budgets[place{limit, w, selector}]; tokens != 0 {
					return Budget{limit, w, tokens, selector}, true
				}
			}
		}
	}
	return Budget{}, false
}
