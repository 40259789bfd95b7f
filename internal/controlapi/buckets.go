package controlapi

import (
	"fmt"
	"net/http"
	"strconv"

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
		method: http.MethodGet, path: bucketsPath, role: admin.RoleRead, result: api.List[api.Bucket]{}, polled: true,
		query:   pageParams(param{"entity", "only buckets of this entity"}, param{"resource", "only buckets for this resource"}),
		summary: "List buckets in use and their balances", run: balances{a}.list,
	}
	var verbs []endpoint
	for _, verb := range []struct {
		name, summary string
		kind          limiter.AdjustKind
	}{
		{"reset", "Fill a bucket, as if it had never been used", limiter.AdjustReset},
		{"set", "Set the balance of a bucket", limiter.AdjustSet},
		{"top-up", "Give tokens to a bucket, up to its capacity", limiter.AdjustTopUp},
		{"take-out", "Take tokens out of a bucket, into debt if need be", limiter.AdjustTakeOut},
	} {
		verbs = append(verbs, endpoint{
			method: http.MethodPost, path: bucketsPath + "/" + verb.name, role: admin.RoleOperate, result: api.Change[api.Bucket]{}, body: api.BucketChange{},
			summary: verb.summary,
			run:     func(c *call) (any, error) { return balances{a}.adjust(c, verb.kind) },
		})
	}
	return append(verbs, list)
}

// errNoBuckets refuses what the store cannot do.
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
	for i := range page.Items {
		list.Items = append(list.Items, *bucketOf(&page.Items[i]))
	}
	return list, nil
}

func (a balances) adjust(c *call, kind limiter.AdjustKind) (any, error) {
	if a.cfg.Buckets == nil {
		return nil, errNoBuckets()
	}
	var body api.BucketChange
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	adjustment, err := adjustmentOf(c.namespace(), kind, &body)
	if err != nil {
		return nil, err
	}
	done, err := a.cfg.Buckets.AdjustBucket(c.ctx(), a.cfg.Now(), adjustment)
	if err != nil {
		return nil, err
	}
	if !done.Found {
		return nil, notFound("entity %s has no bucket for resource %s in namespace %s: it is as good as full", body.Entity, body.Resource, api.Name(c.namespace()))
	}
	change := api.Change[api.Bucket]{Result: api.Changed, Before: bucketOf(&done.Before), After: bucketOf(&done.After)}
	switch {
	case done.Repeated:
		change.Result = api.Repeated
	case sameBalances(done.Before.Limits, done.After.Limits):
		change.Result = api.Unchanged
	}
	return change, nil
}

func sameBalances(a, b []limiter.LimitState) bool {
	for i := range a {
		if i >= len(b) || a[i].Tokens != b[i].Tokens {
			return false
		}
	}
	return len(a) == len(b)
}

// adjustmentOf returns what a body asks for.
func adjustmentOf(namespace string, kind limiter.AdjustKind, body *api.BucketChange) (limiter.Adjustment, error) {
	out := limiter.Adjustment{
		Bucket: limiter.BucketKey{Namespace: namespace, Entity: string(body.Entity), Resource: string(body.Resource)},
		Limit:  body.Limit, Kind: kind, Once: body.Once,
	}
	if body.Entity == "" || body.Resource == "" {
		return out, invalid("the members entity and resource name the bucket: give both")
	}
	if body.Variant != "" {
		n, err := strconv.ParseUint(body.Variant, 16, 64)
		if err != nil || len(body.Variant) != 16 {
			return out, invalid("the member variant is %.100q; it must be 16 hexadecimal digits, as the list of buckets has it", body.Variant)
		}
		out.Bucket.Variant = n
	}
	if kind != limiter.AdjustReset && body.Tokens == nil {
		return out, invalid("the member tokens is missing: it says how many")
	}
	if body.Tokens != nil {
		if out.Tokens = int64(*body.Tokens); kind == limiter.AdjustReset {
			return out, invalid("a reset takes no amount: leave the member tokens out")
		}
	}
	return out, nil
}

// bucketOf returns a bucket as JSON.
func bucketOf(b *limiter.BucketState) *api.Bucket {
	out := &api.Bucket{Entity: api.Name(b.Key.Entity), Resource: api.Name(b.Key.Resource), Limits: make([]api.BucketLimit, len(b.Limits))}
	if b.Key.Variant != 0 {
		out.Variant = fmt.Sprintf("%016x", b.Key.Variant)
	}
	for i, l := range b.Limits {
		out.Limits[i] = api.BucketLimit{Name: l.Limit.Name, Limit: limitjson.Of(l.Limit)}
		if tokens := api.Tokens(l.Tokens); !l.Limit.Unlimited {
			out.Limits[i].Available, out.Limits[i].Leased = &tokens, api.Tokens(l.Leased)
		}
	}
	return out
}
