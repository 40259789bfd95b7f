package config

import (
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// ReadLimits reads limits by name, with their budgets, in the form that the configuration has.
func ReadLimits(n yamlcfg.Node, out **limiter.Limits, budgets **limiter.Budgets) {
	limitsSchema{out, budgets}.Decode(n)
}

// limitsSchema is a mapping of names to limits. After a mistake every name stands for an unlimited
// limit, so that references to it are not reported too.
type limitsSchema struct {
	out     **limiter.Limits
	budgets **limiter.Budgets // nil = budgets cannot stand here
}

// namedLimit is one limit in the form of the file.
type namedLimit struct {
	limiter.Limit

	budgets []limiter.Budget // without its name
	denies  bool             // the budgets do
}

// isRate reports whether a text is a rate.
func isRate(s string) bool {
	_, err := ParseRate(s)
	return err == nil
}

func (s limitsSchema) Decode(n yamlcfg.Node) {
	var entries []yamlcfg.Entry[namedLimit]
	before := n.Failures()
	if n.IsScalar() && isRate(n.Raw()) {
		hint := ""
		if strings.HasPrefix(n.Path(), "limits.entities.") {
			hint = "; limits of an entity stand by resource, and _default_ is every other one"
		}
		n.Failf("must be a mapping of limits, such as {rpm: %s}, not a rate%s", n.Raw(), hint)
		*s.out = &limiter.Limits{}
		return
	}
	s.dict(&entries).Decode(n)
	if n.Failures() == before {
		n.Entries("a limit", checkMoney)
	}
	sound := n.Failures() == before
	set := make([]limiter.Limit, 0, len(entries))
	for _, e := range entries {
		if of := limiter.TriedBeside(e.Name); of != "" && len(e.Value.budgets) > 0 {
			n.Failf("%s is a shadow limit, and adds nothing to usage: leave its budget out", e.Name)
		}
		l := e.Value.Limit
		l.Name = e.Name
		if !sound {
			l = limiter.Unlimited(e.Name)
		}
		set = append(set, l)
		for _, b := range e.Value.budgets {
			if unit, err := limiter.ParseCalendarUnit(b.Window.String()); err == nil && e.Value.denies { // each window has a unit
				set = append(set, limiter.Quota(e.Name+"."+b.Window.String(), b.Tokens, limiter.Calendar{Unit: unit}))
			}
		}
	}
	limits, err := limiter.NewLimits(set...)
	if err != nil {
		n.Failf("%s", reason(err))
		limits = &limiter.Limits{}
	}
	*s.out = limits
	if sound && s.budgets != nil {
		*s.budgets = budgetsOf(entries)
	}
}

// checkMoney refuses dollars for a limit that is not shown in dollars.
func checkMoney(name string, n yamlcfg.Node) {
	if !money.Is(name) && n.HasText(money.Unit) {
		n.Failf("%s", money.NotMoney(name))
	}
}

// Shape describes the mapping.
func (s limitsSchema) Shape() *yamlcfg.Shape { return s.dict(new([]yamlcfg.Entry[namedLimit])).Shape() }

func (s limitsSchema) dict(out *[]yamlcfg.Entry[namedLimit]) yamlcfg.Schema {
	return yamlcfg.Dict[namedLimit]{Out: out, What: "a limit", Name: validLimitName, Item: func(l *namedLimit) yamlcfg.Schema {
		return limit(l, s.budgets != nil)
	}}
}

// limit is a rate, or a mapping with a rate and further keys.
func limit(out *namedLimit, budgets bool) yamlcfg.Schema {
	l := &out.Limit
	var q quota
	var burst, debt int64 = 0, -1
	return yamlcfg.Either{Other: rate(l), Mapping: yamlcfg.Object{Title: "limit", OneOf: []string{"rate", "quota", "in_flight"}, Missing: "needs rate, such as {rate: 100/minute, burst: 200}, quota or in_flight", Keys: slices.Concat([]yamlcfg.Key{
		key("rate", "tokens and period, or `unlimited`; the short form is `rpm: 600/minute`", rate(l)),
	}, q.keys(), []yamlcfg.Key{
		key("burst", "capacity", yamlcfg.Tokens(&burst, 1, limiter.MaxTokens)),
		key("max_debt", "how far below zero a charge may go", yamlcfg.Tokens(&debt, 0, limiter.MaxTokens)),
		key("budget", "[amounts of usage](#budgets) with events; under `limits` only, not for `unlimited`", budget(out, budgets)),
	})}.Then(func(n yamlcfg.Node, sound bool) {
		sound = sound && q.finish(n, l)
		switch {
		case !sound:
		case l.IsInFlight() && (burst > 0 || debt >= 0):
			n.Failf("a limit in flight has neither burst nor max_debt: leave them out")
		case l.IsInFlight() && len(out.budgets) > 0:
			n.Failf("is in flight, and uses nothing up: leave budget out")
		case l.IsQuota() && burst > 0:
			n.Failf("a quota is the most of its window, and has no burst: leave it out")
		case l.Unlimited && (burst > 0 || debt >= 0):
			n.Failf("an unlimited limit has neither burst nor max_debt: leave them out")
		case l.AdmitsNothing() && l.RefillPeriod > 0 && (burst > 0 || debt >= 0):
			n.Failf("a rate of 0 admits nothing, and has neither burst nor max_debt: leave them out")
		case l.Unlimited && len(out.budgets) > 0:
			n.Failf("is unlimited, and usage of such a limit is not counted: leave budget out, or give a high rate, such as 1_000_000_000/second")
		}
		if burst > 0 {
			l.Capacity = burst
		}
		switch {
		case debt == 0:
			l.MaxDebt = limiter.NoDebt
		case debt > 0:
			l.MaxDebt = debt
		}
	})}
}

// rate is "100/minute" or "unlimited".
func rate(out *limiter.Limit) yamlcfg.Schema {
	return yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: `^unlimited$|^[0-9]+(_[0-9]+)*((\.[0-9]{1,6})? USD)?/.+$|^[0-9]+(_[0-9]+)* in flight .+$`}, Read: func(n yamlcfg.Node) {
		if !n.IsScalar() {
			n.Failf("%v, not %s", errRate, n.Describe())
			return
		}
		l, err := ParseRate(n.Raw())
		if err != nil {
			n.Failf("%v", err)
			return
		}
		*out = l
	}}
}

// budget is the budget of a limit, without its name: tokens for each hour, day and month.
func budget(out *namedLimit, allowed bool) yamlcfg.Schema {
	var tokens [limiter.UsageMonth + 1]int64
	windows := yamlcfg.Object{Title: "budget", Keys: []yamlcfg.Key{
		key("hour", "tokens in each hour of UTC, for each entity and resource", yamlcfg.Tokens(&tokens[limiter.UsageHour], 1, limiter.MaxTokens)),
		key("day", "in each day", yamlcfg.Tokens(&tokens[limiter.UsageDay], 1, limiter.MaxTokens)),
		key("month", "in each month", yamlcfg.Tokens(&tokens[limiter.UsageMonth], 1, limiter.MaxTokens)),
		key("deny", "[denies](#quotas-by-the-calendar) above the budget, by a quota for each window", yamlcfg.Bool(&out.denies)),
	}, OneOf: []string{"hour", "day", "month"}, Missing: "needs hour, day or month, such as {month: 50_000_000}"}.Then(
		func(yamlcfg.Node, bool) {
			for _, w := range limiter.UsageWindows() {
				if tokens[w] > 0 {
					out.budgets = append(out.budgets, limiter.Budget{Window: w, Tokens: tokens[w]})
				}
			}
		})
	if allowed {
		return windows
	}
	return yamlcfg.Scalar{Of: *windows.Shape(), Read: func(n yamlcfg.Node) {
		n.Failf("cannot stand on a limit of a rule or a plan, for usage is counted by entity and resource: put it on the same limit under limits, at system, resources or entities")
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
