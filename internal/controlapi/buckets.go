package controlapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/ratelimit/ratelimit/internal/limitjson"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const bucketsPath = namespacePath + "/buckets"

// balances lists buckets and changes their balances.
type balances struct{ *API }

func (a *API) bucketEndpoints() []endpoint {
	list := endpoint{
		method: http.MethodGet, path: bucketsPath, role: admin.RoleRead, result: api.List[api.Bucket]{},
		query:   pageParams(param{"entity", "only buckets of this entity"}, param{"resource", "only buckets for this resource"}),
		summary: "List buckets in use and their balances", run: balances{a}.list,
	}
	one := endpoint{
		method: http.MethodGet, path: namespacePath + "/bucket", role: admin.RoleRead, result: api.Bucket{},
		query: []param{
			{"entity", "the entity of the bucket"},
			{"resource", "its resource"},
			{"limit", "a limit that it has, where the entity has several buckets for the resource"},
			{"variant", "its variant, where the entity has several buckets for the resource; " + api.OrdinaryVariant + " is the ordinary one"},
		},
		summary: "Read one bucket: its balances, the origin of its limits, and when each is full", run: balances{a}.get,
	}
	all := append(make([]endpoint, 0, 2+len(verbs())), list, one)
	for _, verb := range verbs() {
		all = append(all, endpoint{
			method: http.MethodPost, path: bucketsPath + "/" + verb.name, role: admin.RoleOperate, result: api.Adjusted{}, body: api.BucketChange{},
			query: []param{dryRun()}, summary: verb.summary,
			run: func(c *call) (any, error) { return balances{a}.adjust(c, verb.kind) },
		})
	}
	return all
}

// errNoBuckets refuses a request that the store cannot serve.
func errNoBuckets() error {
	return problem(http.StatusNotImplemented, api.Unsupported, "the store of this service cannot read or change balances; ratelimit explain --server shows those of a descriptor")
}

func (a balances) list(c *call) (any, error) {
	if a.cfg.Buckets == nil {
		return nil, errNoBuckets()
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	f := limiter.BucketFilter{Entity: c.query.Get("entity"), Resource: c.query.Get("resource")}
	page, err := a.cfg.Buckets.ListBuckets(c.ctx(), a.cfg.Now(), c.namespace(), f, p)
	if err != nil {
		return nil, err
	}
	list := api.List[api.Bucket]{Items: make([]api.Bucket, 0, len(page.Items)), Next: page.Next}
	list.Items = append(list.Items, a.named(c.namespace(), page.Items)...)
	return list, nil
}

func (a balances) get(c *call) (any, error) {
	if a.cfg.Buckets == nil {
		return nil, errNoBuckets()
	}
	w := wanted{entity: api.Name(c.query.Get("entity")), resource: api.Name(c.query.Get("resource")), limit: c.query.Get("limit"), variant: c.query.Get("variant")}
	key, err := w.key(c.namespace())
	if err != nil {
		return nil, err
	}
	now := a.cfg.Now()
	found, err := a.meant(c, now, &w)
	if err != nil {
		return nil, err
	}
	if found == nil { // a bucket created in the last second may be missing in the list
		look := limiter.Adjustment{Bucket: key, Limit: w.limit, Kind: limiter.AdjustTopUp, DryRun: true}
		done, err := a.cfg.Buckets.AdjustBucket(c.ctx(), now, look)
		if err != nil {
			return nil, err
		}
		if !done.Found {
			return nil, a.none(c, &w)
		}
		found = &done.Before
	}
	if !w.fits(found) {
		return nil, invalid("the bucket holds no limit %.100q", w.limit)
	}
	return a.detailed(c, now, found), nil
}

// detailed returns a bucket with all details.
func (a balances) detailed(c *call, now time.Time, b *limiter.BucketState) *api.Bucket {
	out := bucketOf(b)
	out.Source, out.Leases = a.sourceOf(c, b.Key), b.Leases
	if b.Shards > 1 {
		out.Shards = b.Shards
	}
	for i := range b.Limits {
		out.Limits[i].FullAt = b.Limits[i].FullAt(now)
	}
	return out
}

// sourceOf returns the origin of the limits of a bucket; "" = not known.
func (a balances) sourceOf(c *call, of limiter.BucketKey) string {
	if of.Variant != 0 {
		return a.variants(of.Namespace)[of.Variant]
	}
	if a.cfg.Sources.Level == nil {
		return ""
	}
	level, err := a.cfg.Sources.Level(c.ctx(), of.Namespace, of.Entity, of.Resource)
	if err != nil || level == limiter.SourceNone {
		return ""
	}
	return level.String()
}

// variants names the plans and the rules of a namespace by variants.
func (a balances) variants(namespace string) map[uint64]string {
	if a.cfg.Sources.Variants == nil {
		return nil
	}
	return a.cfg.Sources.Variants(namespace)
}

// named returns buckets with the names of their plans and rules.
func (a balances) named(namespace string, buckets []limiter.BucketState) []api.Bucket {
	names := a.variants(namespace)
	out := make([]api.Bucket, 0, len(buckets))
	for i := range buckets {
		b := bucketOf(&buckets[i])
		b.Source = names[buckets[i].Key.Variant]
		out = append(out, *b)
	}
	return out
}

func variantText(v uint64) string { return fmt.Sprintf("%016x", v) }

// bucketOf returns a bucket as JSON.
func bucketOf(b *limiter.BucketState) *api.Bucket {
	out := &api.Bucket{
		Entity: api.Name(b.Key.Entity), Resource: api.Name(b.Key.Resource), Shadow: b.Key.Shadow(), Limits: make([]api.BucketLimit, len(b.Limits)),
	}
	if b.Key.Variant != 0 {
		out.Variant = variantText(b.Key.Variant)
	}
	for i, l := range b.Limits {
		out.Limits[i] = api.BucketLimit{Name: l.Limit.Name, Limit: limitjson.Of(l.Limit)}
		if tokens := api.Tokens(l.Tokens); !l.Limit.Unlimited {
			out.Limits[i].Available, out.Limits[i].Leased = &tokens, api.Tokens(l.Leased)
		}
	}
	return out
}
