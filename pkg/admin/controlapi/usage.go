package controlapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const usagePath = namespacePath + "/usage"

// usageReader answers requests for usage.
type usageReader struct {
	usage   limiter.Usage             // nil = the service keeps none
	store   Store                     // of stored budgets; nil = there are none
	budgets func() *limiter.BudgetSet // of the configuration; nil = they are not known
}

func newUsageReader(cfg *Config) usageReader {
	if !cfg.Status.Can.Usage {
		return usageReader{}
	}
	return usageReader{cfg.Usage, cfg.Store, cfg.Sources.Budgets}
}

func (a usageReader) endpoints() []endpoint {
	filter := []param{
		{"entity", "only usage of this entity"},
		{"resource", "only usage of this resource"},
		{"window", "hour, day or month; hour without it"},
		{"from", "only windows that start at this time or later, as in RFC 3339"},
		{"to", "only windows that start before this time, as in RFC 3339"},
	}
	return []endpoint{
		{
			method: http.MethodGet, path: usagePath, role: admin.RoleRead, result: api.List[api.Usage]{}, query: pageParams(slices.Concat(filter, []param{{"budgets", "true adds the budgets that are in force now"}})...),
			summary: "List usage by hour, day or month", run: a.list,
		},
		{
			method: http.MethodGet, path: usagePath + "/summary", role: admin.RoleRead, result: api.UsageSummary{}, query: filter,
			summary: fmt.Sprintf("Sum usage up, of at most %d windows", maxSummary), run: a.sum,
		},
	}
}

// Bounds of a request for a sum of usage: the snapshots that it reads, and its time, which is
// shorter than callTime.
const (
	maxSummary  = 100_000
	summaryTime = 20 * time.Second
)

// filter reads the parameters of usage.
func (a usageReader) filter(c *call) (f limiter.UsageFilter, err error) {
	if a.usage == nil {
		return f, problem(http.StatusNotImplemented, api.Unsupported, "this service keeps no usage: a store in memory has none; serve --data DIR keeps it")
	}
	f.Entity, f.Resource = c.query.Get("entity"), c.query.Get("resource")
	if text := c.query.Get("window"); text != "" {
		if f.Window, err = limiter.ParseUsageWindow(text); err != nil {
			return f, invalid("the parameter window is %.100q; it must be hour, day or month", text)
		}
	}
	if f.From, err = c.time("from"); err == nil {
		f.To, err = c.time("to")
	}
	return f, err
}

func (a usageReader) list(c *call) (any, error) {
	f, err := a.filter(c)
	if err != nil {
		return nil, err
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	budgets, err := c.flag("budgets")
	if err != nil {
		return nil, err
	}
	page, err := a.usage.ListUsage(c.ctx(), c.namespace(), f, p)
	list, err := listOf(page, err, usageOf)
	if err == nil && budgets {
		err = a.addBudgets(c, f.Window, list.Items)
	}
	return list, err
}

// addBudgets adds the budgets of limits that were used. Each place of stored limits is read once.
func (a usageReader) addBudgets(c *call, w limiter.UsageWindow, all []api.Usage) error {
	var set *limiter.BudgetSet
	if a.budgets != nil {
		set = a.budgets()
	}
	read := make(map[limiter.Ref]limiter.StoredBudgetLimits)
	for i := range all {
		u := &all[i]
		var stored limiter.StoredBudgets
		for k, ref := range limiter.BudgetPlaces(string(u.Entity), string(u.Resource)) {
			at, known := read[ref]
			if !known && a.store != nil {
				r, err := a.store.Get(c.ctx(), c.namespace(), ref)
				if err != nil {
					return err
				}
				at = limiter.StoredBudgetLimits{Limits: r.Limits, Budgets: r.Budgets}
				read[ref] = at
			}
			stored[k] = at
		}
		of := limiter.BudgetBucket{Namespace: c.namespace(), Entity: string(u.Entity), Resource: string(u.Resource)}
		for limit := range u.Used {
			b, ok := set.Of(&of, limit, w, &stored)
			if !ok {
				continue
			}
			if u.Budget == nil {
				u.Budget = make(map[string]int64)
			}
			u.Budget[limit] = b.Tokens
		}
	}
	return nil
}

func usageOf(u *limiter.UsageSnapshot) api.Usage {
	out := api.Usage{
		Entity: api.Name(u.Entity), Resource: api.Name(u.Resource), Window: api.Window(u.Window.String()),
		Start: u.Start, End: u.Window.End(u.Start), Used: make(map[string]api.Tokens, len(u.Limits)), Events: u.Events,
	}
	for _, l := range u.Limits {
		out.Used[l.Limit] = api.Tokens(l.Tokens)
	}
	return out
}

func (a usageReader) sum(c *call) (any, error) {
	f, err := a.filter(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.ctx(), summaryTime)
	defer cancel()
	var sum limiter.UsageSummary
	for p := (limiter.Page{Size: limiter.MaxPage}); ; {
		page, err := a.usage.ListUsage(ctx, c.namespace(), f, p)
		if ctx.Err() != nil && c.ctx().Err() == nil {
			return nil, invalid("the windows take more than %v to sum up: name an entity or a resource, or shorten the time with from and to", summaryTime)
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			sum.Add(&page.Items[i])
		}
		p.After = page.Next
		if p.After == "" {
			return summaryOf(f.Window, &sum), nil
		}
		if sum.Snapshots >= maxSummary {
			return nil, invalid("there are more than %d windows: name an entity or a resource, or shorten the time with from and to", maxSummary)
		}
	}
}

func summaryOf(w limiter.UsageWindow, s *limiter.UsageSummary) api.UsageSummary {
	out := api.UsageSummary{Window: api.Window(w.String()), Windows: s.Windows, First: s.First, Last: s.Last, Limits: make(map[string]api.UsedTotal, len(s.Limits))}
	for _, l := range s.Limits {
		out.Limits[l.Limit] = api.UsedTotal{Total: api.Tokens(l.Total), Average: api.Tokens(s.Average(l))}
	}
	return out
}
