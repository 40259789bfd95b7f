package controlapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// observer answers requests for the present activity of the service.
type observer struct {
	activity Activity
	now      func() time.Time
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
				{"resource", "only for this resource"},
				{"limit", "only of limits of this name"},
				{"size", "most items, 1 to 1000; 20 without it"},
			},
			summary: "List the entities with the most denials, or the most decisions, in the last minute on this replica", run: a.top,
		},
		{
			method: http.MethodGet, path: "/v1/decisions", role: admin.RoleRead, result: api.Decisions{},
			summary: "Count the descriptors that this replica has decided since its start, by result", run: a.decisions,
		},
	}
}

func (a observer) top(c *call) (any, error) {
	by, size := api.TopDenied, topSize
	counter := a.activity.Denied
	switch text := c.query.Get("by"); text {
	case "", api.TopDenied:
	case api.TopBusiest:
		by, counter = text, a.activity.Busiest
	case api.TopShadow:
		by, counter = text, a.activity.Shadow
	default:
		return nil, invalid("the parameter by is %.100q; it must be %s, %s or %s", text, api.TopDenied, api.TopBusiest, api.TopShadow)
	}
	if counter == nil {
		return nil, errNoActivity()
	}
	if text := c.query.Get("size"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > limiter.MaxPage {
			return nil, invalid("the parameter size is %.100q; it must be 1 to %d", text, limiter.MaxPage)
		}
		size = n
	}
	rows := counter.Top(a.now(), size, TopFilter{
		Namespace: c.query.Get("namespace"), Resource: c.query.Get("resource"), Limit: c.query.Get("limit"),
	})
	out := api.Top{By: by, Seconds: int(TopWindow / time.Second), Items: make([]api.TopRow, 0, len(rows))}
	for _, r := range rows {
		out.Items = append(out.Items, api.TopRow{
			Namespace: api.Name(r.Namespace), Entity: api.Name(r.Entity), Resource: api.Name(r.Resource), Limit: r.Limit,
			Decisions: r.Events, Tokens: api.Tokens(r.Amount),
		})
	}
	return out, nil
}

func (a observer) decisions(*call) (any, error) {
	if a.activity.Decided == nil {
		return nil, errNoActivity()
	}
	return api.Decisions{Since: a.activity.Since.UTC(), Time: a.now().UTC(), Results: a.activity.Decided()}, nil
}

func errNoActivity() error {
	return problem(http.StatusNotImplemented, api.Unsupported, "this service does not count its decisions")
}
