package embedded

import (
	"slices"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/budget"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// inForce are the budgets that hold, under the short names that usage has. It is immutable; nil =
// there are none.
type inForce struct {
	given   *budget.Set // the configuration's, in full
	set     *budget.Set // the same
	limits  map[string]bool
	windows []limiter.UsageWindow // in order
}

// newInForce returns the budgets of a configuration; nil where there are none.
func newInForce(given *budget.Set) *inForce {
	if given.Len() == 0 {
		return nil
	}
	f := &inForce{given: given, limits: make(map[string]bool)}
	at := make(map[limiter.Ref]*limiter.Budgets)
	for ref, budgets := range given.All() {
		at[shortRef(ref)] = budgets
		f.add(budgets)
	}
	f.set = budget.NewSet(at)
	slices.Sort(f.windows)
	return f
}

// add notes the limits and the windows of budgets.
func (f *inForce) add(budgets *limiter.Budgets) {
	for i := range budgets.Len() {
		b := budgets.At(i)
		f.limits[b.Limit] = true
		if !slices.Contains(f.windows, b.Window) {
			f.windows = append(f.windows, b.Window)
		}
	}
}

// shortRef returns a ref under the names that usage has.
func shortRef(ref limiter.Ref) limiter.Ref {
	ref.Entity, ref.Resource = shortname.Of(ref.Entity), shortname.Of(ref.Resource)
	return ref
}

// has reports whether there is a budget of a limit of the name at all.
func (f *inForce) has(limit string) bool { return f != nil && f.limits[limit] }

// of returns the budget of usage in a window.
func (f *inForce) of(c *counted) (limiter.Budget, bool) {
	return f.set.Of(c.bucket(), c.limit, c.window, &budget.Stored{})
}
