package controlapi

import (
	"errors"
	"net/http"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func (a *API) namespaceEndpoints() []endpoint {
	change := func(method, path, summary string, by limiter.Switch) endpoint {
		return endpoint{
			method: method, path: path, role: admin.RoleAdminister, result: api.Change[api.Namespace]{}, bare: true, query: changeParams(),
			summary: summary, run: func(c *call) (any, error) { return changeState(c, by) },
		}
	}
	return []endpoint{
		{
			method: http.MethodGet, path: "/v1/namespaces", role: admin.RoleRead, result: api.List[api.Namespace]{},
			query:   pageParams(param{"deleted", "true lists those that are deleted, being purged or purged, and no others"}),
			summary: "List the namespaces in use", run: listNamespaces,
		},
		{
			method: http.MethodGet, path: namespacePath, role: admin.RoleRead, result: api.Namespace{},
			summary: "Read a namespace, in any state", run: a.getNamespace,
		},
		change(http.MethodPut, namespacePath, "Create a namespace, or a purged one anew", limiter.CreateNamespace),
		change(http.MethodDelete, namespacePath, "Delete a namespace: requests that would take from it are denied, and its content stays", limiter.DeleteNamespace),
		change(http.MethodPost, namespacePath+"/recover", "Recover a deleted namespace with its content", limiter.RecoverNamespace),
	}
}

func listNamespaces(c *call) (any, error) {
	if c.store == nil {
		return nil, errNoStore()
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	deleted, err := c.flag("deleted")
	if err != nil {
		return nil, err
	}
	page, err := c.store.ListNamespaces(c.ctx(), limiter.NamespaceFilter{Deleted: deleted}, p)
	return listOf(page, err, func(ns *limiter.Namespace) api.Namespace { return *namespaceOf(*ns) })
}

// getNamespace reads a namespace. One that rules name is active before its first request.
func (a *API) getNamespace(c *call) (any, error) {
	name, names := c.namespace(), a.newNames()
	ns, err := c.store.GetNamespace(c.ctx(), name)
	switch {
	case !errors.Is(err, limiter.ErrNotFound):
		return namespaceOf(ns), err
	case names.isRuled(name):
		return namespaceOf(limiter.Namespace{Name: name}), nil
	}
	known, err := names.namespaces(c)
	if err != nil {
		return nil, err
	}
	hint := ""
	if near := limiter.ClosestName(name, known); near != "" {
		hint = "; did you mean " + api.Name(near).String() + "?"
	}
	return nil, notFound("namespace %.100q was never in use%s", name, hint)
}

// changeState changes the state of a namespace.
func changeState(c *call, by limiter.Switch) (any, error) {
	dry, err := c.flag("dryRun")
	if err != nil {
		return nil, err
	}
	done, err := c.store.Edit(c.ctx(), c.now(), c.namespace(), limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: by, DryRun: dry})
	if err != nil {
		return nil, err
	}
	stateOf := func(r limiter.Record) *api.Namespace {
		return namespaceOf(limiter.Namespace{Name: c.namespace(), State: r.State, Since: r.Since, Disabled: r.Disabled})
	}
	change := api.Change[api.Namespace]{Result: api.Unchanged, DryRun: dry, InMemory: !c.durable, Before: stateOf(done.Before), After: stateOf(done.After)}
	switch {
	case !done.Changed:
	case by == limiter.DeleteNamespace:
		change.Result = api.Deleted
	case by == limiter.RecoverNamespace:
		change.Result = api.Changed
	default:
		change.Result = api.Created
		if done.Before.State == limiter.NamespaceActive {
			change.Before = nil // it was never used
		}
		if !dry {
			c.code = http.StatusCreated
		}
	}
	return change, nil
}

// namespaceOf returns a namespace as JSON.
func namespaceOf(ns limiter.Namespace) *api.Namespace {
	return &api.Namespace{
		Name: api.Name(ns.Name), ID: ns.ID, CreatedAt: ns.CreatedAt, State: api.NamespaceState(ns.State.String()), Since: ns.Since, Disabled: ns.Disabled,
	}
}
