package controlapi

import (
	"net/http"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const disabledPath = namespacePath + "/disabled"

// disabledLevels are the paths of subjects that can be disabled.
func disabledLevels() []limitsLevel {
	return []limitsLevel{
		{disabledPath + "/namespace", "the namespace", func(*http.Request) limiter.Ref { return limiter.SystemLimitsRef() }},
		{disabledPath + "/resources/{resource}", "a resource", func(r *http.Request) limiter.Ref {
			return limiter.ResourceLimitsRef(r.PathValue("resource"))
		}},
		{disabledPath + "/entities/{entity}", "an entity", func(r *http.Request) limiter.Ref { return limiter.EntityRef(r.PathValue("entity")) }},
	}
}

// switches disable and enable subjects.
type switches struct{ names newNames }

func (a switches) endpoints() []endpoint {
	list := endpoint{
		method: http.MethodGet, path: disabledPath, role: admin.RoleRead, result: api.List[api.Disabled]{},
		query: pageParams(), summary: "List disabled entities, resources and namespaces", run: listDisabled,
	}
	var all []endpoint
	for _, level := range disabledLevels() {
		all = append(all, endpoint{
			method: http.MethodGet, path: level.path, role: admin.RoleRead, result: api.Disabled{},
			summary: "Read whether " + level.of + " is disabled",
			run:     func(c *call) (any, error) { return a.disabled(c, level.ref(c.r)) },
		}, a.endpoint(http.MethodPut, level, limiter.Disable, "Disable "+level.of+": requests that would take from it are denied"),
			a.endpoint(http.MethodDelete, level, limiter.Enable, "Enable "+level.of))
	}
	return append(all, list)
}

func (a switches) endpoint(method string, level limitsLevel, to limiter.Switch, summary string) endpoint {
	return endpoint{
		method: method, path: level.path, role: admin.RoleOperate, result: api.Change[api.Disabled]{}, bare: true,
		query: changeParams(allowNew(api.NewNamespace, api.NewEntity, api.NewResource)), summary: summary,
		run: func(c *call) (any, error) { return a.setDisabled(c, level.ref(c.r), to) },
	}
}

// disabled reads whether the subject of ref is disabled.
func (a switches) disabled(c *call, ref limiter.Ref) (any, error) {
	r, err := c.store.Get(c.ctx(), c.namespace(), ref)
	if err != nil {
		return nil, err
	}
	out := disabledOf(ref, r)
	if unknown, err := a.names.newSubject(c, ref); err == nil && !r.Disabled {
		out.Note = unknown.note()
	}
	return out, nil
}

func listDisabled(c *call) (any, error) {
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := c.store.ListDisabled(c.ctx(), c.namespace(), p)
	return listOf(page, err, func(s *limiter.Stored) api.Disabled { return *disabledOf(s.Ref, s.Record) })
}

// setDisabled disables or enables the subject of ref.
func (a switches) setDisabled(c *call, ref limiter.Ref, to limiter.Switch) (any, error) {
	dry, err := c.flag("dryRun")
	if err != nil {
		return nil, err
	}
	if err := a.names.checkNamespace(c); err != nil {
		return nil, err
	}
	unknown, unchecked := a.names.newSubject(c, ref)
	if err := refuse(unknown, unchecked); to == limiter.Disable && err != nil {
		return nil, err
	}
	done, err := c.store.Edit(c.ctx(), c.now(), c.namespace(), limiter.Edit{Ref: ref, Switch: to, DryRun: dry})
	if err != nil {
		return nil, err
	}
	change := api.Change[api.Disabled]{
		Result: api.Unchanged, DryRun: dry, InMemory: !c.durable,
		Before: disabledOf(ref, done.Before), After: disabledOf(ref, done.After),
	}
	if done.Changed {
		change.Result = api.Changed
	} else if unchecked == nil { // it was never disabled
		change.Note = unknown.note()
	}
	return change, nil
}

// disabledOf returns the state of the subject of ref as JSON.
func disabledOf(ref limiter.Ref, r limiter.Record) *api.Disabled {
	out := &api.Disabled{Disabled: r.Disabled}
	if d := r.Disabling; d != nil {
		out.Since, out.By, out.Reason = d.Since, d.By, d.Reason
	}
	out.Level, out.Entity, out.Resource = levelOf(ref)
	if out.Level == api.LevelSystem {
		out.Level = api.LevelNamespace
	}
	return out
}
