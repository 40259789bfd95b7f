package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// UsageOf selects usage. The zero value selects all usage by hour.
type UsageOf struct {
	Entity   api.Name   // only of this entity; "" = of all
	Resource api.Name   // only of this resource; "" = of all
	Window   api.Window // "" = api.Hour
	From, To time.Time  // only windows that start at From or later, and before To; zero = without a bound
	Budgets  bool       // with the budgets in force
}

func (u UsageOf) query(p Page) url.Values {
	params := map[string]string{"entity": string(u.Entity), "resource": string(u.Resource), "window": string(u.Window)}
	if u.Budgets {
		params["budgets"] = "true"
	}
	return query(p, between(u.From, u.To, params))
}

// ListUsage lists usage, of one entity and resource in order of time.
func (n *Namespace) ListUsage(ctx context.Context, of UsageOf, p Page) (*api.List[api.Usage], error) {
	return send[api.List[api.Usage]](ctx, n.Service, http.MethodGet, n.path+"/usage", of.query(p), nil, Options{})
}

// SumUsage sums usage. The service refuses to sum too many windows.
func (n *Namespace) SumUsage(ctx context.Context, of UsageOf) (*api.UsageSummary, error) {
	return send[api.UsageSummary](ctx, n.Service, http.MethodGet, n.path+"/usage/summary", of.query(Page{}), nil, Options{})
}
