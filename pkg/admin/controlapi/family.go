package controlapi

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxChildren is the most children in a family.
const maxChildren = 50

func (a finder) familyEndpoint() endpoint {
	return endpoint{
		method: http.MethodGet, path: entityPath + "/family", role: admin.RoleRead, result: api.Family{},
		summary: "Read an entity with its ancestors and children, of the store and of the configuration file", run: a.family,
	}
}

// family reads the chain of an entity as decisions do: a stored parent comes before that of the file.
func (a finder) family(c *call) (any, error) {
	file := a.sources.file()
	id := c.r.PathValue("entity")
	var f api.Family
	for next := id; next != "" && len(f.Chain) < limiter.MaxLevels; {
		if slices.ContainsFunc(f.Chain, func(m api.Member) bool { return string(m.ID) == next }) {
			break
		}
		r, err := c.store.Get(c.ctx(), c.namespace(), limiter.EntityRef(next))
		if err != nil {
			return nil, err
		}
		inFile, found := file.Static.Entities[next]
		m := api.Member{ID: api.Name(next), File: found, Cascade: inFile.Cascade, Plan: inFile.Plan, Disabled: r.Disabled}
		next = inFile.Parent
		if e := r.Entity; e != nil {
			m.Stored, m.Name, m.Plan, m.Metadata = true, e.Name, cmp.Or(e.Plan, m.Plan), e.Metadata
			if e.Parent != "" {
				m.Cascade, next = e.Cascade, e.Parent
			}
		}
		f.Chain = append(f.Chain, m)
	}
	return withChildren(c, file, id, f)
}

func withChildren(c *call, file *File, id string, f api.Family) (any, error) {
	page, err := c.store.ListEntities(c.ctx(), c.namespace(), limiter.EntityFilter{Parent: id}, limiter.Page{Size: maxChildren})
	if err != nil {
		return nil, err
	}
	var children []string
	for i := range page.Items {
		children = append(children, page.Items[i].Ref.Entity)
	}
	for child, e := range file.Static.Entities {
		if e.Parent == id {
			children = append(children, child)
		}
	}
	slices.Sort(children)
	children = slices.Compact(children)
	f.MoreChildren = page.Next != "" || len(children) > maxChildren
	f.Children = make([]api.Name, 0, len(children))
	for _, child := range children[:min(len(children), maxChildren)] {
		f.Children = append(f.Children, api.Name(child))
	}
	return f, nil
}
