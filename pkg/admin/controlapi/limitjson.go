package controlapi

import (
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// LimitJSON returns a limit in the form of the API. Members that have their default are left out.
func LimitJSON(l limiter.Limit) api.Limit {
	if l.Unlimited {
		return api.Limit{Rate: l.String()}
	}
	out := api.Limit{Rate: l.String()}
	if !l.Windowed() && l.Capacity != l.RefillAmount {
		out.Rate = l.WithBurst(l.RefillAmount).String()
		out.Burst = l.Capacity
	}
	if debt := max(l.MaxDebt, 0); l.MaxDebt != 0 { // limiter.NoDebt is 0 in JSON
		out.MaxDebt = &debt
	}
	return out
}

// LimitsJSON returns limits by name, with their budgets.
func LimitsJSON(limits *limiter.Limits, budgets *limiter.Budgets) map[string]api.Limit {
	out := make(map[string]api.Limit, limits.Len())
	for i := range limits.Len() {
		l := limits.At(i)
		limit := LimitJSON(l)
		for _, w := range limiter.UsageWindows() {
			if b, ok := budgets.Of(l.Name, w); ok {
				setBudget(&limit, w, b.Tokens)
			}
		}
		out[l.Name] = limit
	}
	return out
}

// setBudget gives a limit a budget.
func setBudget(l *api.Limit, w limiter.UsageWindow, tokens int64) {
	if l.Budget == nil {
		l.Budget = make(map[api.Window]int64)
	}
	l.Budget[api.Window(w.String())] = tokens
}
