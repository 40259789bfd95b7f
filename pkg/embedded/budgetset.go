package embedded

import (
	"maps"
	"slices"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/budget"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// inForce are the budgets that hold, under the short names that usage has. It is immutable; nil =
// there are none.
type inForce struct {
	set     *budget.Set                    // of the configuration
	stored  map[recordKey]*limiter.Budgets // of stored limits; without budgets, where the configuration has some at their place
	limits  map[string]bool
	windows []limiter.UsageWindow // in order
}

// refresh puts the budgets of a configuration and of stored limits in force, where they have changed.
func (w *budgetWatch) refresh(given *budget.Set) {
	generation := w.usage.catalog.generation.Load() // before the records
	same := w.read && w.given == given
	if same && w.generation == generation {
		return
	}
	next := newInForce(given, w.usage.catalog)
	if !same || next == nil || w.set == nil || !maps.EqualFunc(w.set.stored, next.stored, (*limiter.Budgets).Equal) {
		w.set = next
	}
	w.read, w.given, w.generation = true, given, generation
}

// newInForce returns the budgets of a configuration and of stored limits; nil = there are none.
func newInForce(given *budget.Set, c *catalog) *inForce {
	f := &inForce{stored: make(map[recordKey]*limiter.Budgets), limits: make(map[string]bool)}
	at := make(map[limiter.Ref]*limiter.Budgets)
	for ref, budgets := range given.All() {
		at[shortRef(ref)] = budgets
		f.add(budgets)
	}
	f.set = budget.NewSet(at)
	c.mu.RLock()
	defer c.mu.RUnlock()
	for k, r := range c.records {
		if r.Limits.Len() > 0 && (r.Budgets != nil || given.At(k.ref) != nil) {
			f.stored[recordKey{shortname.Of(k.namespace), shortRef(k.ref)}] = r.Budgets
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

// shortRef returns a ref under the names that usage has.
func shortRef(ref limiter.Ref) limiter.Ref {
	ref.Entity, ref.Resource = shortname.Of(ref.Entity), shortname.Of(ref.Resource)
	return ref
}

// has reports whether there is a budget of a limit of the name at all.
func (f *inForce) has(limit string) bool { return f != nil && f.limits[limit] }

// of returns the budget of usage in a window.
func (f *inForce) of(c *counted) (limiter.Budget, bool) {
	var stored budget.Stored
	if len(f.stored) > 0 {
		for i, place := range budget.Places(c.entity, c.resource) {
			stored[i].Budgets, stored[i].There = f.stored[recordKey{c.namespace, place}]
		}
	}
	return f.set.Of(c.bucket(), c.limit, c.window, &stored)
}
