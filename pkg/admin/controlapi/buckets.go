package controlapi

import (
	"net/http"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const bucketsPath = namespacePath + "/buckets"

func (a balances) endpoints() []endpoint {
	list := endpoint{
		method: http.MethodGet, path: bucketsPath, role: admin.RoleRead, result: api.List[api.Bucket]{},
		query:   pageParams(param{"entity", "only buckets of this entity"}, param{"resource", "only buckets for this resource"}),
		summary: "List buckets in use and their balances", run: a.list,
	}
	one := endpoint{
		method: http.MethodGet, path: namespacePath + "/bucket", role: admin.RoleRead, result: api.Bucket{},
		query: []param{
			{"entity", "the entity of the bucket"},
			{"resource", "its resource"},
			{"limit", "a limit that it has, where the entity has several buckets for the resource"},
			{"variant", "its variant, where the entity has several buckets for the resource; " + api.OrdinaryVariant + " is the ordinary one"},
		},
		summary: "Read one bucket: its balances, the origin of its limits, and when each is full", run: a.get,
	}
	all := append(make([]endpoint, 0, 2+len(verbs())), list, one)
	for _, verb := range verbs() {
		all = append(all, endpoint{
			method: http.MethodPost, path: bucketsPath + "/" + verb.name, role: admin.RoleOperate, result: api.Adjusted{}, body: api.BucketChange{},
			query: changeParams(), summary: verb.summary,
			run: func(c *call) (any, error) { return a.adjust(c, verb.kind) },
		})
	}
	return all
}

func (a balances) list(c *call) (any, error) {
	if a.buckets == nil {
		return nil, errNoBuckets()
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	f := limiter.BucketFilter{Entity: c.query.Get("entity"), Resource: c.query.Get("resource")}
	now := c.now()
	page, err := a.buckets.ListBuckets(c.ctx(), now, c.namespace(), f, p)
	if err != nil {
		return nil, err
	}
	return api.List[api.Bucket]{Items: a.named(c, now, page.Items), Next: page.Next}, nil
}

func (a balances) get(c *call) (any, error) {
	if a.buckets == nil {
		return nil, errNoBuckets()
	}
	w := wanted{entity: api.Name(c.query.Get("entity")), resource: api.Name(c.query.Get("resource")), limit: c.query.Get("limit"), variant: c.query.Get("variant")}
	key, err := w.key(c.namespace())
	if err != nil {
		return nil, err
	}
	now := c.now()
	found, err := a.meant(c, now, &w)
	if err != nil {
		return nil, err
	}
	if found == nil { // a bucket of a variant created in the last second may be missing in the list
		if found, err = a.look(c, now, key); err != nil {
			return nil, err
		}
	}
	if found == nil {
		return nil, a.none(c, &w)
	}
	if !w.fits(found) {
		return nil, invalid("the bucket holds no limit %.100q", w.limit)
	}
	return a.detailed(c, now, found), nil
}
