package controlapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// balances lists buckets and changes their balances.
type balances struct {
	buckets limiter.Buckets // nil = balances cannot be changed
	sources Sources
}

// errNoBuckets refuses a request that the store cannot serve.
func errNoBuckets() error {
	return problem(http.StatusNotImplemented, api.Unsupported, "the store of this service cannot read or change balances; ratelimit explain --server shows those of a descriptor")
}

// detailed returns a bucket with all details.
func (a balances) detailed(c *call, now time.Time, b *limiter.BucketState) *api.Bucket {
	out := a.sourced(c, now, b) // b is under the limits in force then
	out.Leases = b.Leases
	if b.Shards > 1 {
		out.Shards = b.Shards
	}
	for i := range b.Limits {
		out.Limits[i].FullAt = b.Limits[i].FullAt(now)
		if l := b.Limits[i].Limit; out.Window != nil && b.Limits[i].Tokens < l.Capacity*limiter.Milli {
			out.Limits[i].FullAt = b.Key.Window.FullAt(now)
		}
	}
	return out
}

// sourced puts a bucket under the limits in force, as its next request does. It returns the bucket with the known origins
// of its limits.
func (a balances) sourced(c *call, now time.Time, b *limiter.BucketState) *api.Bucket {
	source, comes := "", func(limiter.Source) bool { return true }
	if b.Key.Variant != 0 {
		source = a.variants(b.Key.Namespace)[b.Key.Variant]
		comes = beforeOwn(source)
	}
	found, _ := a.effective(c, b.Key) // without them the bucket is shown as it is stored
	all := slices.DeleteFunc(found, func(l limiter.EffectiveLimit) bool { return !comes(l.Source) })
	underLimits(now, ofWindow(all, b.Key.Window, now), b)
	out := bucketOf(b)
	out.Source = source
	for _, l := range all {
		for i := range out.Limits {
			if out.Limits[i].Name == l.Limit.Name {
				out.Limits[i].Source = l.From()
			}
		}
	}
	return out
}

// beforeOwn returns which levels come before the limits of a rule or a plan, by the name of its variant. "" is
// unknown, as for limits of a call, and then none does.
func beforeOwn(variant string) func(limiter.Source) bool {
	before := make([]limiter.Source, 0, 4)
	if variant != "" {
		before = append(before, limiter.SourceEntity, limiter.SourceEntityConfig)
	}
	if strings.HasPrefix(variant, "plan ") {
		before = append(before, limiter.SourceEntityDefault, limiter.SourceEntityDefaultConfig)
	}
	return func(s limiter.Source) bool { return slices.Contains(before, s) }
}

// effective returns the limits of the levels for an entity and resource; nil where they are not known.
func (a balances) effective(c *call, of limiter.BucketKey) ([]limiter.EffectiveLimit, error) {
	if a.sources.Effective == nil {
		return nil, nil
	}
	return a.sources.Effective(c.ctx(), of.Namespace, of.Entity, of.Resource)
}

// inForce returns the limits in force of an ordinary bucket whose window is not over; nil where they are not known. The
// bucket may be under the older ones of its last request.
func (a balances) inForce(c *call, now time.Time, of limiter.BucketKey) (*limiter.Limits, error) {
	if of.Variant != 0 || limiter.Shortened(of.Entity) || limiter.Shortened(of.Resource) {
		return nil, nil //nolint:nilnil // they are not known
	}
	all, err := a.effective(c, of)
	return ofWindow(all, of.Window, now), err
}

// ofWindow returns the limits whose calendar has a window that is not over, or those without one for a bucket for all time.
func ofWindow(all []limiter.EffectiveLimit, w limiter.Window, now time.Time) *limiter.Limits {
	var same []limiter.Limit
	for _, l := range all {
		if !w.Over(now) && w.Of(&l.Limit) {
			same = append(same, l.Limit)
		}
	}
	limits, err := limiter.NewLimits(same...)
	if err != nil { // impossible: they are of a valid set
		return nil
	}
	return limits
}

// underLimits has a bucket be under limits that its next request puts it under.
func underLimits(now time.Time, limits *limiter.Limits, b *limiter.BucketState) {
	for i := range b.Limits {
		if n := limits.Find(b.Limits[i].Limit.Name); n >= 0 {
			b.Limits[i].Under(limits.At(n), now)
		}
	}
}

// variants names the plans and the rules of a namespace by variants.
func (a balances) variants(namespace string) map[uint64]string {
	if a.sources.Variants == nil {
		return nil
	}
	return a.sources.Variants(namespace)
}

// named returns buckets under the limits in force, with the names of their plans and rules. Where limits cannot be read,
// the others are as they are stored: each read waits for the store.
func (a balances) named(c *call, now time.Time, buckets []limiter.BucketState) []api.Bucket {
	names := a.variants(c.namespace())
	out := make([]api.Bucket, 0, len(buckets))
	var err error
	for i := range buckets {
		if err == nil {
			var limits *limiter.Limits
			limits, err = a.inForce(c, now, buckets[i].Key)
			underLimits(now, limits, &buckets[i])
		}
		b := bucketOf(&buckets[i])
		b.Source = names[buckets[i].Key.Variant]
		out = append(out, *b)
	}
	return out
}

// bucketOf returns a bucket as JSON.
func bucketOf(b *limiter.BucketState) *api.Bucket {
	out := &api.Bucket{
		Entity: api.Name(b.Key.Entity), Resource: api.Name(b.Key.Resource), Shadow: b.Key.Shadow(), Limits: make([]api.BucketLimit, len(b.Limits)),
	}
	if text := b.Key.VariantText(); text != api.OrdinaryVariant {
		out.Variant = text
	}
	windowed := b.Key.Window != limiter.Window{}
	if windowed {
		out.Window = &api.BucketWindow{Start: time.Unix(b.Key.Window.Start, 0).UTC(), End: time.Unix(b.Key.Window.End, 0).UTC()}
	}
	for i, l := range b.Limits {
		out.Limits[i] = api.BucketLimit{Name: l.Limit.Name, Limit: LimitJSON(l.Limit)}
		out.Limits[i].InFlight = b.Key.Window.InFlight()
		switch {
		case l.Limit.Windowed(): // it is one in force
		case out.Limits[i].InFlight:
			out.Limits[i].Limit = LimitJSON(limiter.Concurrent(l.Limit.Name, l.Limit.Capacity, b.Key.Window.MaxTime()))
		case windowed: // which quota it is of is not known here
			out.Limits[i].Limit = api.Limit{Rate: api.QuotaUntil(l.Limit.Capacity, out.Window.End)}
		}
		if tokens := api.Tokens(l.Tokens); !l.Limit.Unlimited {
			out.Limits[i].Available, out.Limits[i].Leased = &tokens, api.Tokens(l.Leased)
		}
	}
	return out
}
