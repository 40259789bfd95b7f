package config

import (
	"github.com/ratelimit/ratelimit/pkg/budget"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// budgetSchema is the budget of a limit: tokens for each hour, day and month.
type budgetSchema struct {
	out     *[]limiter.Budget // without the name of the limit
	allowed bool
}

func (s budgetSchema) decode(d *decoder, v value) {
	if !s.allowed {
		d.failf(v, "cannot stand on a limit of a rule or a plan, for usage is counted by entity and resource: put it on the same limit under limits, at system, resources or entities")
		return
	}
	var tokens [limiter.UsageMonth + 1]int64
	before := d.failures()
	s.object(&tokens).decode(d, v)
	for _, w := range limiter.UsageWindows() {
		if tokens[w] > 0 {
			*s.out = append(*s.out, limiter.Budget{Window: w, Tokens: tokens[w]})
		}
	}
	if len(*s.out) == 0 && d.failures() == before {
		d.failf(v, "needs hour, day or month, such as {month: 50_000_000}")
	}
}

func (budgetSchema) object(tokens *[limiter.UsageMonth + 1]int64) object {
	o := object{title: "budget"}
	for _, w := range limiter.UsageWindows() {
		o.keys = append(o.keys, key{w.String(), integer(&tokens[w], 1, limiter.MaxTokens)})
	}
	return o
}

func (s budgetSchema) walk(path string, visit func(string)) {
	s.object(new([limiter.UsageMonth + 1]int64)).walk(path, visit)
}

// budgetsOf returns the budgets of limits that are sound; nil for none.
func budgetsOf(entries []entry[namedLimit]) *limiter.Budgets {
	var all []limiter.Budget
	for _, e := range entries {
		for _, b := range e.value.budgets {
			b.Limit = e.name
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
func (s *limitsSection) budgets() *budget.Set {
	at := make(map[limiter.Ref]*limiter.Budgets)
	add := func(ref limiter.Ref, l level) {
		if l.budgets != nil {
			at[ref] = l.budgets
		}
	}
	add(limiter.SystemLimitsRef(), s.system)
	for _, r := range s.resources {
		add(limiter.ResourceLimitsRef(r.name), r.value)
	}
	for _, e := range s.entities {
		for _, r := range e.value.limits {
			add(limiter.EntityLimitsRef(e.name, r.name), r.value)
		}
	}
	if len(at) == 0 {
		return nil
	}
	return budget.NewSet(at)
}
