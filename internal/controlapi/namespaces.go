package controlapi

import (
	"net/http"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
)

func namespaceEndpoints() []endpoint {
	return []endpoint{{
		method: http.MethodGet, path: "/v1/namespaces", role: admin.RoleRead, result: api.List[api.Namespace]{},
		query: pageParams(), summary: "List the namespaces in use", run: listNamespaces,
	}}
}

func listNamespaces(c *call) (any, error) {
	if c.store == nil {
		return nil, errNoStore()
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := c.store.ListNamespaces(c.ctx(), p)
	if err != nil {
		return nil, err
	}
	list := api.List[api.Namespace]{Items: make([]api.Namespace, 0, len(page.Items)), Next: page.Next}
	for _, ns := range page.Items {
		list.Items = append(list.Items, api.Namespace{Name: api.Name(ns.Name), ID: ns.ID, CreatedAt: ns.CreatedAt})
	}
	return list, nil
}
