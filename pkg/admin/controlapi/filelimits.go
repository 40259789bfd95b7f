package controlapi

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func (a finder) fileEndpoint() endpoint {
	return endpoint{
		method: http.MethodGet, path: limitsPath + "/file", role: admin.RoleRead, result: api.List[api.FileLimits]{},
		query:   pageParams(param{"search", "only limits with this text in one of their names"}),
		summary: "List the limits of the configuration file, of every place", run: a.listFile,
	}
}

func (a finder) listFile(c *call) (any, error) {
	if a.sources.File == nil {
		return nil, errNoFile()
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	first := 0
	if p.After != "" {
		if first, err = strconv.Atoi(p.After); err != nil || first < 0 {
			return nil, invalid("the parameter after is %.100q, which is no cursor of this list", p.After)
		}
	}
	f, search := a.sources.File(), c.query.Get("search")
	all := slices.DeleteFunc(f.all(c.namespace()), func(l api.FileLimits) bool { return !mentions(&l, search) })
	end := min(len(all), first+cmp.Or(p.Size, limiter.DefaultPage))
	list := api.List[api.FileLimits]{Items: all[min(first, len(all)):end]}
	if end < len(all) {
		list.Next = strconv.Itoa(end)
	}
	return list, nil
}

func errNoFile() error {
	return problem(http.StatusNotImplemented, api.Unsupported, "this service does not decide, and has no limits of a configuration file")
}

// mentions reports whether limits have a text in one of their names.
func mentions(l *api.FileLimits, search string) bool {
	names := slices.AppendSeq([]string{l.Name, l.Domain, named(l.Entity), named(l.Resource)}, maps.Keys(l.Limits))
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, search) })
}

func named(n *api.Name) string {
	if n == nil {
		return ""
	}
	return string(*n)
}

// all returns the limits of the file for a namespace, from the general to the special.
func (f *File) all(namespace string) []api.FileLimits {
	all := []api.FileLimits{} // never null in JSON
	add := func(l api.FileLimits, limits *limiter.Limits, of *limiter.Ref) {
		if limits.Len() == 0 {
			return
		}
		var budgets *limiter.Budgets
		if of != nil {
			budgets = f.Budgets.At(*of)
		}
		l.Limits = LimitsJSON(limits, budgets)
		all = append(all, l)
	}
	system := limiter.SystemLimitsRef()
	add(api.FileLimits{Place: api.PlaceSystem}, f.Static.System, &system)
	for name, limits := range sorted(f.Static.Resources) {
		ref := limiter.ResourceLimitsRef(name)
		add(api.FileLimits{Place: api.PlaceResource, Resource: new(api.Name(name))}, limits, &ref)
	}
	for _, k := range f.Static.Kinds {
		for resource, limits := range sorted(k.Limits) {
			add(api.FileLimits{Place: api.PlaceKind, Name: k.Prefix + "*", Resource: new(api.Name(resource))}, limits, nil)
		}
	}
	for name, limits := range sorted(f.Static.Plans) {
		add(api.FileLimits{Place: api.PlacePlan, Name: name}, limits, nil)
	}
	for _, own := range f.Rules.OwnLimits(namespace) {
		add(api.FileLimits{
			Place: api.PlaceRule, Name: own.Rule, Domain: own.Domain, Entity: new(api.Name(own.Entity)), Resource: new(api.Name(own.Resource)), Shadow: own.Shadow,
		}, own.Limits, nil)
	}
	for id, e := range sorted(f.Static.Entities) {
		for resource, limits := range sorted(e.Limits) {
			ref := limiter.EntityLimitsRef(id, resource)
			add(api.FileLimits{Place: api.PlaceEntity, Entity: new(api.Name(id)), Resource: new(api.Name(resource))}, limits, &ref)
		}
	}
	return all
}

// sorted iterates over a map in the order of its keys.
func sorted[V any](m map[string]V) func(yield func(string, V) bool) {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
