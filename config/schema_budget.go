package config

import (
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// budget is the budget of a limit, without its name: tokens for each hour, day and month.
func budget(out *[]limiter.Budget, allowed bool) yamlcfg.Schema {
	var tokens [limiter.UsageMonth + 1]int64
	windows := yamlcfg.Object{Title: "budget", Keys: []yamlcfg.Key{
		key("hour", "tokens in each hour of UTC, for each entity and resource", yamlcfg.Integer(&tokens[limiter.UsageHour], 1, limiter.MaxTokens)),
		key("day", "in each day", yamlcfg.Integer(&tokens[limiter.UsageDay], 1, limiter.MaxTokens)),
		key("month", "in each month", yamlcfg.Integer(&tokens[limiter.UsageMonth], 1, limiter.MaxTokens)),
	}, OneOf: []string{"hour", "day", "month"}, Missing: "needs hour, day or month, such as {month: 50_000_000}"}.Then(
		func(*yamlcfg.Decoder, yamlcfg.Value, bool) {
			for _, w := range limiter.UsageWindows() {
				if tokens[w] > 0 {
					*out = append(*out, limiter.Budget{Window: w, Tokens: tokens[w]})
				}
			}
		})
	if allowed {
		return windows
	}
	return yamlcfg.Scalar{Of: *windows.Shape(), Read: func(d *yamlcfg.Decoder, v yamlcfg.Value) {
		d.Failf(v, "cannot stand on a limit of a rule or a plan, for usage is counted by entity and resource: put it on the same limit under limits, at system, resources or entities")
	}}
}

// budgetsOf returns the budgets of limits that are sound; nil for none.
func budgetsOf(entries []yamlcfg.Entry[namedLimit]) *limiter.Budgets {
	var all []limiter.Budget
	for _, e := range entries {
		for _, b := range e.Value.budgets {
			b.Limit = e.Name
			all = append(all, b)
		}
	}
	budgets, err := limiter.NewBudgets(all...)
	if err != nil { // impossible: each has a name, a window and tokens of its own
		return nil
	}
	return budgets
}

// budgets returns the budgets of the file by their place; nil for none.
func (s *limitsSection) budgets() *limiter.BudgetSet {
	at := make(map[limiter.Ref]*limiter.Budgets)
	add := func(ref limiter.Ref, l level) {
		if l.budgets != nil {
			at[ref] = l.budgets
		}
	}
	add(limiter.SystemLimitsRef(), s.system)
	for _, r := range s.resources {
		add(limiter.ResourceLimitsRef(r.Name), r.Value)
	}
	for _, e := range s.entities {
		for _, r := range e.Value.limits {
			add(limiter.EntityLimitsRef(e.Name, r.Name), r.Value)
		}
	}
	if len(at) == 0 {
		return nil
	}
	return limiter.NewBudgetSet(at)
}
