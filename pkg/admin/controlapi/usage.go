package controlapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const usagePath = namespacePath + "/usage"

// usageReader answers requests for usage.
type usageReader struct {
	usage     limiter.Usage             // nil = the service keeps none
	store     Store                     // of stored budgets; nil = there are none
	budgets   func() *limiter.BudgetSet // of the configuration; nil = they are not known
	effective effectiveSource           // nil = the limits that decide are not known
	file      func() *File              // nil = the limits of rules are not known
}

func newUsageReader(cfg *Config) usageReader {
	if !cfg.Status.Can.Usage {
		return usageReader{}
	}
	return usageReader{cfg.Usage, cfg.Store, cfg.Sources.Budgets, cfg.Sources.Effective, cfg.Sources.File}
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

// addBudgets adds the budgets of limits that were used.
func (a usageReader) addBudgets(c *call, w limiter.UsageWindow, all []api.Usage) error {
	r := budgetReader{usageReader: a, c: c, window: w, stored: make(map[limiter.Ref]limiter.StoredBudgetLimits), deciding: make(map[limiter.BudgetBucket][]limiter.EffectiveLimit)}
	if a.file != nil {
		r.own = slices.DeleteFunc(a.file().Rules.OwnLimits(c.namespace()), func(own descriptor.OwnLimits) bool { return own.Shadow })
	}
	for i := range all {
		if err := r.add(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

// budgetReader reads the budgets of usage for one answer. Each place of stored limits is read once.
type budgetReader struct {
	usageReader

	c        *call
	window   limiter.UsageWindow
	stored   map[limiter.Ref]limiter.StoredBudgetLimits
	deciding map[limiter.BudgetBucket][]limiter.EffectiveLimit
	own      []descriptor.OwnLimits // of the rules in force
}

// add adds the budget of each limit: the quota that decides in the window, or else the budget in force.
func (r *budgetReader) add(u *api.Usage) error {
	of := limiter.BudgetBucket{Namespace: r.c.namespace(), Entity: string(u.Entity), Resource: string(u.Resource)}
	quotas, err := r.quotas(of)
	if err != nil {
		return err
	}
	stored, err := r.storedBudgets(of)
	if err != nil {
		return err
	}
	var set *limiter.BudgetSet
	if r.budgets != nil {
		set = r.budgets()
	}
	for limit := range u.Used {
		tokens, from := int64(0), ""
		if q := quotaIn(quotas, limit, r.window); q != nil {
			tokens, from = q.Limit.Capacity, q.From()
		} else if b, source := set.Of(&of, limit, r.window, stored); source != limiter.SourceNone {
			tokens, from = b.Tokens, source.String()
		}
		if from == "" {
			continue
		}
		if u.Budget == nil {
			u.Budget, u.BudgetFrom = make(map[string]int64), make(map[string]string)
		}
		u.Budget[limit], u.BudgetFrom[limit] = tokens, from
	}
	return nil
}

// quotas returns the limits that decide for a bucket; nil = they are not known.
func (r *budgetReader) quotas(of limiter.BudgetBucket) ([]limiter.EffectiveLimit, error) {
	if r.effective == nil {
		return nil, nil
	}
	if all, known := r.deciding[of]; known {
		return all, nil
	}
	all, err := r.effective(r.c.ctx(), of.Namespace, of.Entity, of.Resource)
	if err == nil {
		all = r.withRules(of, all)
	}
	r.deciding[of] = all
	return all, err
}

// withRules returns the limits that decide where the own ones of rules are in force too. Those of the first rule count.
func (r *budgetReader) withRules(of limiter.BudgetBucket, all []limiter.EffectiveLimit) []limiter.EffectiveLimit {
	all = slices.Clone(all)
	for _, own := range r.own {
		for i := range own.Limits.Len() {
			l := limiter.EffectiveLimit{Limit: own.Limits.At(i), Source: limiter.SourceRule}
			k := slices.IndexFunc(all, func(have limiter.EffectiveLimit) bool { return have.Limit.Name == l.Limit.Name })
			switch {
			case k >= 0 && all[k].Source <= l.Source,
				!l.Limit.IsQuota() && (k < 0 || !all[k].Limit.IsQuota()),
				!descriptor.Covers(own.Entity, of.Entity), !descriptor.Covers(own.Resource, of.Resource):
			case k < 0:
				all = append(all, l)
			default:
				all[k] = l
			}
		}
	}
	return all
}

// quotaIn returns the quota that bounds the use of a limit in a window: the one named as usd.month for usd, or
// else the limit itself; nil = there is none.
func quotaIn(all []limiter.EffectiveLimit, limit string, w limiter.UsageWindow) (found *limiter.EffectiveLimit) {
	for i := range all {
		switch l := all[i].Limit; {
		case l.Name == limit+"."+w.String() && l.BudgetOf() == limit:
			return &all[i]
		case l.Name == limit && l.IsQuota() && l.Calendar.Unit.String() == w.String():
			found = &all[i]
		}
	}
	return found
}

// storedBudgets returns the limits that are stored at the places of a bucket. An entity or a resource that is "" has none.
func (r *budgetReader) storedBudgets(of limiter.BudgetBucket) (*limiter.StoredBudgets, error) {
	var stored limiter.StoredBudgets
	for k, ref := range limiter.BudgetPlaces(of.Entity, of.Resource) {
		at, known := r.stored[ref]
		if !known && r.store != nil && isNamed(ref) {
			record, err := r.store.Get(r.c.ctx(), of.Namespace, ref)
			if err != nil {
				return nil, err
			}
			at = limiter.StoredBudgetLimits{Limits: record.Limits, Budgets: record.Budgets}
			r.stored[ref] = at
		}
		stored[k] = at
	}
	return &stored, nil
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
