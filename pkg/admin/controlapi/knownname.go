package controlapi

import (
	"maps"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// hasEntity reports whether the file has an entity, or one with this parent. A kind of entities has none.
func (f *File) hasEntity(id string) bool {
	if _, ok := f.Static.Entities[id]; ok {
		return true
	}
	for _, e := range f.Static.Entities {
		if e.Parent == id {
			return true
		}
	}
	return false
}

// resources returns the resources that rules of a namespace take from, and those that the file has limits for.
func (f *File) resources(namespace string) *descriptor.ResourceNames {
	all := slices.Collect(maps.Keys(f.Static.Resources))
	for _, e := range f.Static.Entities {
		all = slices.AppendSeq(all, maps.Keys(e.Limits))
	}
	for _, k := range f.Static.Kinds {
		all = slices.AppendSeq(all, maps.Keys(k.Limits))
	}
	all = slices.DeleteFunc(all, func(name string) bool { return name == limiter.DefaultResource })
	return f.Rules.ResourceNames(namespace, all...)
}

// entities returns the entities of the file, and the prefixes of its kinds.
func (f *File) entities() []string {
	all := slices.Collect(maps.Keys(f.Static.Entities))
	for _, k := range f.Static.Kinds {
		all = append(all, k.Prefix)
	}
	return all
}

// hasEntity reports whether an entity is stored, in the configuration or in use.
func (n newNames) hasEntity(c *call, id string) (bool, error) {
	if n.file().hasEntity(id) {
		return true, nil
	}
	r, err := c.store.Get(c.ctx(), c.namespace(), limiter.EntityRef(id))
	if err != nil || r.Entity != nil || r.Disabled {
		return true, err
	}
	one := limiter.Page{Size: 1}
	limits, err := c.store.ListLimits(c.ctx(), c.namespace(), limiter.LimitsFilter{Entity: id}, one)
	if err != nil || len(limits.Items) > 0 {
		return true, err
	}
	children, err := c.store.ListEntities(c.ctx(), c.namespace(), limiter.EntityFilter{Parent: id}, one)
	if err != nil || len(children.Items) > 0 {
		return true, err
	}
	return n.inUse(c, limiter.BucketFilter{Entity: id})
}

// hasResource reports whether a resource has limits, is disabled or is in use.
func (n newNames) hasResource(c *call, name string) (bool, error) {
	r, err := c.store.Get(c.ctx(), c.namespace(), limiter.ResourceLimitsRef(name))
	if err != nil || r.Stored() || r.Disabled {
		return true, err
	}
	limits, err := c.store.ListLimits(c.ctx(), c.namespace(), limiter.LimitsFilter{Resource: name}, limiter.Page{Size: 1})
	if err != nil || len(limits.Items) > 0 {
		return true, err
	}
	return n.inUse(c, limiter.BucketFilter{Resource: name})
}

// inUse reports whether there is a bucket.
func (n newNames) inUse(c *call, f limiter.BucketFilter) (bool, error) {
	if n.buckets == nil {
		return false, nil
	}
	page, err := n.buckets.ListBuckets(c.ctx(), c.now(), c.namespace(), f, limiter.Page{Size: 1})
	return len(page.Items) > 0, err
}

// entities returns IDs of known entities: of each source as many as are on one page.
func (n newNames) entities(c *call) ([]string, error) {
	known := slices.Collect(maps.Keys(n.file().Static.Entities))
	most := limiter.Page{Size: limiter.MaxPage}
	stored, err := c.store.ListEntities(c.ctx(), c.namespace(), limiter.EntityFilter{}, most)
	if err != nil {
		return nil, err
	}
	limits, err := c.store.ListLimits(c.ctx(), c.namespace(), limiter.LimitsFilter{Entities: true}, most)
	if err != nil {
		return nil, err
	}
	for _, s := range append(stored.Items, limits.Items...) {
		known = append(known, s.Ref.Entity)
	}
	used, err := n.used(c)
	for i := range used {
		known = append(known, used[i].Key.Entity)
	}
	return known, err
}

// resources adds the names of known resources to those of rules: of each source as many as are on one page.
func (n newNames) resources(c *call, known []string) ([]string, error) {
	limits, err := c.store.ListLimits(c.ctx(), c.namespace(), limiter.LimitsFilter{}, limiter.Page{Size: limiter.MaxPage})
	if err != nil {
		return nil, err
	}
	for _, s := range limits.Items {
		if s.Ref.Resource != "" && s.Ref.Resource != limiter.DefaultResource {
			known = append(known, s.Ref.Resource)
		}
	}
	used, err := n.used(c)
	for i := range used {
		known = append(known, used[i].Key.Resource)
	}
	slices.Sort(known)
	return slices.Compact(known), err
}

// used returns a page of the buckets in use.
func (n newNames) used(c *call) ([]limiter.BucketState, error) {
	if n.buckets == nil {
		return nil, nil
	}
	page, err := n.buckets.ListBuckets(c.ctx(), c.now(), c.namespace(), limiter.BucketFilter{}, limiter.Page{Size: limiter.MaxPage})
	return page.Items, err
}
