package controlapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// observer answers requests for the present activity of the service.
type observer struct {
	activity Activity
	fleet    Fleet // nil = not known
}

// topSize is the most items of a top without the parameter size.
const topSize = 20

func (a observer) endpoints() []endpoint {
	return []endpoint{
		{
			method: http.MethodGet, path: "/v1/top", role: admin.RoleRead, result: api.Top{},
			query: []param{
				{"by", "denied: the most denials; busiest: the most decisions that took or charged; shadow: the most denials if limits in shadow mode were in force. denied without it"},
				{"namespace", "only of this namespace"},
				{"entity", "only of this entity"},
				{"resource", "only for this resource"},
				{"limit", "only of limits of this name"},
				{"size", "most items, 1 to 1000; 20 without it"},
				{"fleet", "true: of all replicas, by the 20 that each other replica has reported last"},
			},
			summary: "List the entities with the most denials, or the most decisions, in the last minute on this replica, or on all", run: a.top,
		},
		{
			method: http.MethodGet, path: "/v1/decisions", role: admin.RoleRead, result: api.Decisions{},
			summary: "Count the descriptors that this replica has decided since its start, by result, and those denied by reason", run: a.decisions,
		},
	}
}

func (a observer) top(c *call) (any, error) {
	by := cmp.Or(c.query.Get("by"), api.TopDenied)
	counter, known := map[string]*TopCounter{api.TopDenied: a.activity.Denied, api.TopBusiest: a.activity.Busiest, api.TopShadow: a.activity.Shadow}[by]
	switch {
	case !known:
		return nil, invalid("the parameter by is %.100q; it must be %s, %s or %s", by, api.TopDenied, api.TopBusiest, api.TopShadow)
	case counter == nil:
		return nil, errNoActivity()
	}
	size, err := c.size(limiter.MaxPage, topSize)
	if err != nil {
		return nil, err
	}
	filter := TopFilter{Namespace: c.query.Get("namespace"), Entity: c.query.Get("entity"), Resource: c.query.Get("resource"), Limit: c.query.Get("limit")}
	switch all, err := c.flag("fleet"); {
	case err != nil:
		return nil, err
	case !all:
		return topOf(by, counter.Top(c.now(), size, filter)), nil
	case a.fleet == nil:
		return nil, errNoActivity()
	}
	out := topOf(by, a.fleet.Top(c.r.Context(), by, size, filter))
	out.Fleet = true
	return out, nil
}

// topOf returns rows in the form of an answer.
func topOf(by string, rows []TopRow) api.Top {
	out := api.Top{By: by, Seconds: int(TopWindow / time.Second), Items: make([]api.TopRow, 0, len(rows))}
	for _, r := range rows {
		out.Items = append(out.Items, api.TopRow{
			Namespace: api.Name(r.Namespace), Entity: api.Name(r.Entity), Resource: api.Name(r.Resource), Limit: r.Limit,
			Decisions: r.Events, Tokens: api.Tokens(r.Amount),
		})
	}
	return out
}

func (a observer) decisions(c *call) (any, error) {
	if a.activity.Decided == nil {
		return nil, errNoActivity()
	}
	out := api.Decisions{Since: a.activity.Since.UTC(), Time: c.now().UTC(), Results: a.activity.Decided()}
	if a.activity.DeniedBy != nil {
		out.Denials = a.activity.DeniedBy()
	}
	return out, nil
}

func errNoActivity() error {
	return problem(http.StatusNotImplemented, api.Unsupported, "this service does not count its decisions")
}
