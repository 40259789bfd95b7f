package controlapi

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// effective lists the limits that decide for an entity and a resource.
func (a *API) effective(c *call) (any, error) {
	if a.cfg.Sources.Effective == nil {
		return nil, problem(http.StatusNotImplemented, api.Unsupported, "this service does not decide, and knows no limits but the stored ones")
	}
	all, err := a.cfg.Sources.Effective(c.ctx(), c.namespace(), c.query.Get("entity"), c.query.Get("resource"))
	if err != nil {
		return nil, err
	}
	of := limiter.BudgetBucket{Namespace: c.namespace(), Entity: c.query.Get("entity"), Resource: c.query.Get("resource")}
	items, err := a.cfg.Sources.effectiveOf(c, of, all)
	return api.List[api.EffectiveLimit]{Items: items}, err
}

// limitsChange returns the outcome of an edit of limits, with the limits that decide before and after it.
func (a *API) limitsChange(c *call, ref limiter.Ref, done limiter.Edited, dry bool) (any, error) {
	change := changeOf(c, done, dry, func(r limiter.Record) *api.Limits { return limitsOf(ref, r) })
	return api.LimitsChange{Change: change, Effective: a.cfg.Sources.effects(c, ref, done)}, nil
}

// effects returns the limits that decide before and after an edit; nil = they are not known.
func (s Sources) effects(c *call, ref limiter.Ref, done limiter.Edited) *api.Effective {
	before, errBefore := s.effectiveWith(c, ref, done.Before)
	after, errAfter := s.effectiveWith(c, ref, done.After)
	if errBefore != nil || errAfter != nil || before == nil { // the change is made, and its effect is not known
		return nil
	}
	return &api.Effective{Before: before, After: after}
}

// effectiveWith returns the limits that decide for the subject of a ref with a record at it; nil = they
// are not known.
func (s Sources) effectiveWith(c *call, ref limiter.Ref, r limiter.Record) ([]api.EffectiveLimit, error) {
	if s.Effective == nil {
		return nil, nil
	}
	resource := ref.Resource
	if resource == limiter.DefaultResource {
		resource = ""
	}
	change := limiter.Stored{Ref: ref, Record: r}
	all, err := s.Effective(c.ctx(), c.namespace(), ref.Entity, resource, change)
	if err != nil {
		return nil, err
	}
	return s.effectiveOf(c, limiter.BudgetBucket{Namespace: c.namespace(), Entity: ref.Entity, Resource: resource}, all, change)
}

// checkNames refuses names of limits that no level, plan or rule has: nothing would consume them.
func (a *API) checkNames(c *call, ref limiter.Ref, limits *limiter.Limits) error {
	allowed, err := c.allows(api.NewLimit)
	if err != nil || allowed || a.cfg.Sources.Names == nil {
		return err
	}
	known := maps.Clone(a.cfg.Sources.Names())
	var unknown []string
	for i := range limits.Len() {
		l := limits.At(i)
		l.Name = cmp.Or(limiter.TriedBeside(l.Name), l.Name)
		if name := l.Name; !known[name] && !known[l.BudgetOf()] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	stored, err := storedNames(c, ref)
	if err != nil {
		return err
	}
	maps.Copy(known, stored)
	unknown = slices.DeleteFunc(unknown, func(name string) bool { return known[name] })
	if len(unknown) == 0 {
		return nil
	}
	there := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	if there == "" {
		there = "none"
	}
	return invalid("no level, plan or rule has a limit %s; there is %s%s", strings.Join(unknown, ", "), there, howToAllow)
}

// storedNames returns the names of the limits that are stored at the levels of a ref.
func storedNames(c *call, ref limiter.Ref) (map[string]bool, error) {
	names := make(map[string]bool)
	for _, of := range []limiter.Ref{ref, limiter.EntityLimitsRef(ref.Entity, limiter.DefaultResource), limiter.ResourceLimitsRef(ref.Resource), limiter.SystemLimitsRef()} {
		if of.Kind == limiter.RefEntityLimits && of.Entity == "" || of.Kind == limiter.RefResourceLimits && of.Resource == "" {
			continue
		}
		r, err := c.store.Get(c.ctx(), c.namespace(), of)
		if err != nil {
			return nil, err
		}
		r.Limits.AddNames(names)
	}
	return names, nil
}
