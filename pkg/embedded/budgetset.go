package embedded

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// inForce is the budgets in force, under the short names of usage records. It is immutable; nil =
// no budgets.
type inForce struct {
	set     *limiter.BudgetSet                      // of the configuration
	stored  map[recordID]limiter.StoredBudgetLimits // limits that replace configured ones, or have or are budgets
	limits  map[string]bool
	windows []limiter.UsageWindow // in order
}

// newInForce returns the budgets of a configuration and of stored limits; nil = there are none.
func newInForce(given *limiter.BudgetSet, records *recordSet) *inForce {
	f := &inForce{stored: make(map[recordID]limiter.StoredBudgetLimits), limits: make(map[string]bool)}
	at := make(map[limiter.Ref]*limiter.Budgets)
	for ref, budgets := range given.All() {
		at[shortRef(ref)] = budgets
		f.add(budgets)
	}
	f.set = limiter.NewBudgetSet(at)
	records.mu.RLock()
	defer records.mu.RUnlock()
	for k, r := range records.records {
		if r.Limits.Len() > 0 && (r.Budgets != nil || given.At(k.Ref) != nil || r.Limits.Beside()) {
			f.stored[recordID{Namespace: limiter.ShortName(k.Namespace), Ref: shortRef(k.Ref)}] = limiter.StoredBudgetLimits{Limits: r.Limits, Budgets: r.Budgets}
			f.add(r.Budgets)
		}
	}
	if len(f.limits) == 0 {
		return nil
	}
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

// shortRef returns a ref with the short names of usage records.
func shortRef(ref limiter.Ref) limiter.Ref {
	ref.Entity, ref.Resource = limiter.ShortName(ref.Entity), limiter.ShortName(ref.Resource)
	return ref
}

// has reports whether any budget is of a limit with this name.
func (f *inForce) has(limit string) bool { return f != nil && f.limits[limit] }

// of returns the budget of usage in a window, and its bucket.
func (f *inForce) of(c *counted) (limiter.BudgetBucket, limiter.Budget, bool) {
	var stored limiter.StoredBudgets
	if len(f.stored) > 0 {
		for i, place := range limiter.BudgetPlaces(c.entity, c.resource) {
			stored[i] = f.stored[recordID{Namespace: c.namespace, Ref: place}]
		}
	}
	of := c.bucket()
	b, from := f.set.Of(&of, c.limit, c.window, &stored)
	return of, b, from != limiter.SourceNone
}

// counted identifies usage of a limit in a window that is in no row.
type counted struct {
	namespace, entity, resource, limit string

	window limiter.UsageWindow
	start  int64 // Unix s
}

func (c *counted) bucket() limiter.BudgetBucket {
	return limiter.BudgetBucket{Namespace: c.namespace, Entity: c.entity, Resource: c.resource}
}

// sameBudgets reports whether the stored limits of a place have the same names and budgets.
func sameBudgets(a, b limiter.StoredBudgetLimits) bool {
	return a.Budgets.Equal(b.Budgets) && a.Limits.Hash() == b.Limits.Hash()
}
