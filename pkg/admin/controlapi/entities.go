package controlapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	entitiesPath = namespacePath + "/entities"
	entityPath   = entitiesPath + "/{entity}"
)

func (a *API) entityEndpoints() []endpoint {
	return []endpoint{
		{
			method: http.MethodGet, path: entitiesPath, role: admin.RoleRead, result: api.List[api.Entity]{},
			query:   pageParams(param{"parent", "only children of this entity"}),
			summary: "List entities", run: listEntities,
		},
		{
			method: http.MethodGet, path: entityPath, role: admin.RoleRead, result: api.Entity{},
			summary: "Read an entity", run: a.getEntity,
		},
		{
			method: http.MethodPut, path: entityPath, role: admin.RoleAdminister, result: api.EntityChange{}, body: api.Entity{},
			query:   changeParams(allowNew(api.NewNamespace, api.NewEntity, api.NewParent, api.NewPlan)),
			summary: "Create or replace an entity", run: a.putEntity,
		},
		{
			method: http.MethodDelete, path: entityPath, role: admin.RoleAdminister, result: api.Change[api.Entity]{},
			query:   changeParams(),
			summary: "Delete an entity and its limits", run: a.deleteEntity,
		},
	}
}

func listEntities(c *call) (any, error) {
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := c.store.ListEntities(c.ctx(), c.namespace(), limiter.EntityFilter{Parent: c.query.Get("parent")}, p)
	return listOf(page, err, func(s *limiter.Stored) api.Entity { return *entityOf(s.Record) })
}

func (a *API) getEntity(c *call) (any, error) {
	id := c.r.PathValue("entity")
	r, err := c.get(limiter.EntityRef(id))
	if err == nil && r.Entity == nil {
		detail := ""
		if r.Disabled {
			detail = ", and it is disabled"
		}
		err = notFound("no entity %s is stored in namespace %s%s", api.Name(id), api.Name(c.namespace()), detail)
	}
	if err != nil {
		return nil, err
	}
	e := entityOf(r)
	e.PlanUnknown = e.Plan != "" && a.cfg.Sources.Plans != nil && !slices.Contains(a.cfg.Sources.Plans(), e.Plan)
	return e, nil
}

func (a *API) putEntity(c *call) (any, error) {
	var body api.Entity
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	id := c.r.PathValue("entity")
	if body.ID != "" && string(body.ID) != id {
		return nil, invalid("the member id is %s; the path says %s", body.ID, api.Name(id))
	}
	e := limiter.Entity{ID: id, Name: body.Name, Parent: string(body.Parent), Cascade: body.Cascade, Plan: body.Plan, Metadata: body.Metadata}
	if e.Cascade && e.Parent == "" {
		return nil, invalid("the member cascade is true, and there is no parent that could consume: give parent too")
	}
	if err := checkNotKind(id); err != nil {
		return nil, err
	}
	if err := a.checkNewEntity(c, &e); err != nil {
		return nil, err
	}
	if err := a.checkRoom(c, limiter.EntityRef(id), limiter.Record{Entity: &e}); err != nil {
		return nil, err
	}
	done, dry, err := c.edit(limiter.EntityRef(id), limiter.Record{Entity: &e, Disabled: body.Disabled}, body.ETag)
	if err != nil {
		return nil, err
	}
	out := api.EntityChange{Change: changeOf(c, done, dry, entityOf)}
	if done.Before.Entity == nil && e.Plan != "" || done.Before.Entity != nil && done.Before.Entity.Plan != e.Plan {
		out.Effective = a.cfg.Sources.effects(c, limiter.EntityRef(id), done)
	}
	return out, nil
}

// checkNotKind refuses the name of a kind of entities.
func checkNotKind(id string) error {
	if strings.HasSuffix(id, "*") {
		return invalid("%s is a kind of entities, whose plan and limits stand in the configuration, under limits.entities: name one entity", api.Name(id))
	}
	return nil
}

// checkNewEntity refuses new names of an entity that are probably mistakes.
func (a *API) checkNewEntity(c *call, e *limiter.Entity) error {
	if err := a.newNames().checkNamespace(c); err != nil {
		return err
	}
	if err := a.cfg.Sources.checkPlan(c, e.Plan); err != nil {
		return err
	}
	if err := a.newNames().checkCut(c, e.ID); err != nil {
		return err
	}
	return a.newNames().checkParent(c, e.ID, e.Parent)
}

// checkPlan refuses a plan that the configuration does not have: an entity would have no limit of it.
func (s Sources) checkPlan(c *call, plan string) error {
	allowed, err := c.allows(api.NewPlan)
	if err != nil || allowed || plan == "" || s.Plans == nil {
		return err
	}
	plans := s.Plans()
	if slices.Contains(plans, plan) {
		return nil
	}
	there := cmp.Or(strings.Join(plans, ", "), "none")
	return invalid("the configuration has no plan %s; there is %s%s", api.Name(plan), there, howToAllow)
}

func (a *API) deleteEntity(c *call) (any, error) {
	id := c.r.PathValue("entity")
	done, dry, err := c.edit(limiter.EntityRef(id), limiter.Record{}, "")
	if err == nil && !done.Changed {
		err = notFound("no entity %s is stored in namespace %s, nor limits of it", api.Name(id), api.Name(c.namespace()))
	}
	if err != nil {
		return nil, err
	}
	return changeOf(c, done, dry, entityOf), nil
}

// entityOf returns the entity of a record as JSON.
func entityOf(r limiter.Record) *api.Entity {
	e := r.Entity
	return &api.Entity{
		ID: api.Name(e.ID), Name: e.Name, Parent: api.Name(e.Parent), Cascade: e.Cascade, Plan: e.Plan,
		Metadata: e.Metadata, CreatedAt: e.CreatedAt, Disabled: r.Disabled, ETag: etagOf(r),
	}
}
