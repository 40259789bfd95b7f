package api

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// UsageOf selects usage. The zero value selects all usage by hour.
type UsageOf struct {
	Entity   Name      // only of this entity; "" = of all
	Resource Name      // only of this resource; "" = of all
	Window   Window    // "" = Hour
	From, To time.Time // only windows that start at From or later, and before To; zero = without a bound
	Budgets  bool      // with the budgets in force
}

func (u UsageOf) query(p Page) url.Values {
	params := map[string]string{"entity": string(u.Entity), "resource": string(u.Resource), "window": string(u.Window)}
	if u.Budgets {
		params["budgets"] = "true"
	}
	return query(p, between(u.From, u.To, params))
}

// ListUsage lists usage, of one entity and resource in order of time.
func (n *NamespaceClient) ListUsage(ctx context.Context, of UsageOf, p Page) (*List[Usage], error) {
	return send[List[Usage]](ctx, n.Service, http.MethodGet, n.path+"/usage", of.query(p), nil, ClientOptions{})
}

// SumUsage sums usage. The service refuses to sum too many windows.
func (n *NamespaceClient) SumUsage(ctx context.Context, of UsageOf) (*UsageSummary, error) {
	return send[UsageSummary](ctx, n.Service, http.MethodGet, n.path+"/usage/summary", of.query(Page{}), nil, ClientOptions{})
}
