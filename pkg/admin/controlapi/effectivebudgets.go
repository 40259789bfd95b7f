package controlapi

import (
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// effectiveOf returns the limits that decide for a bucket, with their budgets in force. Each change takes the place
// of the record of its ref.
func (s Sources) effectiveOf(c *call, of limiter.BudgetBucket, all []limiter.EffectiveLimit, changes ...limiter.Stored) ([]api.EffectiveLimit, error) {
	r := budgetReader{usageReader: usageReader{store: c.store}, c: c, stored: make(map[limiter.Ref]limiter.StoredBudgetLimits)}
	for _, change := range changes {
		r.stored[change.Ref] = limiter.StoredBudgetLimits{Limits: change.Record.Limits, Budgets: change.Record.Budgets}
	}
	stored, err := r.storedBudgets(of)
	if err != nil {
		return nil, err
	}
	var inFile *limiter.BudgetSet
	if s.Budgets != nil {
		inFile = s.Budgets()
	}
	out := make([]api.EffectiveLimit, len(all))
	for i, l := range all {
		out[i] = api.EffectiveLimit{Name: l.Limit.Name, Limit: LimitJSON(l.Limit), Source: l.From()}
		if l.Limit.Unlimited { // its usage is not counted
			continue
		}
		for _, w := range limiter.UsageWindows() {
			if b, source := inFile.Of(&of, l.Limit.Name, w, stored); source != limiter.SourceNone {
				setBudget(&out[i].Limit, w, b.Tokens)
			}
		}
	}
	return out, nil
}

// isNamed reports whether a place of limits has the names that it needs.
func isNamed(place limiter.Ref) bool {
	switch place.Kind {
	case limiter.RefEntityLimits:
		return place.Entity != "" && place.Resource != ""
	case limiter.RefResourceLimits:
		return place.Resource != ""
	case limiter.RefSystemLimits, limiter.RefEntity:
	}
	return true
}
