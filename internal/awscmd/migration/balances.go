package migration

import (
	"context"
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// slack is how much higher a balance may be than in the set, in millitokens: each side
// drops less than one when it refills.
const slack = 2

// balances lowers the balances of a namespace to those of the set.
func (r *run) balances(ctx context.Context, ns *Namespace) error {
	for i := range ns.Balances {
		if err := r.balance(ctx, ns.Name, &ns.Balances[i]); err != nil {
			return fmt.Errorf("balance of entity %.100q for resource %.100q: %w", ns.Balances[i].Entity, ns.Balances[i].Resource, err)
		}
		if (i+1)%batch == 0 || i+1 == len(ns.Balances) {
			r.told(i%batch + 1)
		}
	}
	return nil
}

// balance lowers the balances of a bucket that are higher than in the set. Tokens that the
// bucket gave since then stay taken, so a second call has nothing left to do.
func (r *run) balance(ctx context.Context, namespace string, b *Balance) error {
	if r.o.DryRun {
		return nil
	}
	limits, err := r.limitsOf(ctx, namespace, b)
	if err != nil {
		return err
	}
	op := limiter.Op{
		Bucket: limiter.BucketKey{Namespace: namespace, Entity: b.Entity, Resource: b.Resource},
		Limits: limits, // without a generation: a bucket of the service keeps its own limits
	}
	unplaced := false
	for i := range b.Limits {
		at := limits.Find(b.Limits[i].Name)
		unplaced = unplaced || at < 0
		if at >= 0 && !limits.Unlimited(at) {
			op.Spends = append(op.Spends, limiter.Spend{Limit: b.Limits[i].Name, Look: true})
		}
	}
	if unplaced {
		r.out.Unplaced++
	}
	if len(op.Spends) == 0 {
		return nil
	}
	peeked := []limiter.Op{op}
	if _, err := r.to.Take(ctx, r.o.Now(), peeked); err != nil {
		return err
	}
	op.Spends = r.charges(b, peeked[0].Spends)
	if len(op.Spends) == 0 {
		r.out.Enough++
		return nil
	}
	r.out.Lowered++
	_, err = r.to.Take(ctx, r.o.Now(), []limiter.Op{op})
	return err
}

// limitsOf returns the stored limits of a bucket: those of the first level that has some.
func (r *run) limitsOf(ctx context.Context, namespace string, b *Balance) (*limiter.Limits, error) {
	refs := []limiter.Ref{
		limiter.EntityLimitsRef(b.Entity, b.Resource), limiter.EntityLimitsRef(b.Entity, limiter.DefaultResource),
		limiter.ResourceLimitsRef(b.Resource), limiter.SystemLimitsRef(),
	}
	records := make([]limiter.Record, len(refs))
	if _, err := r.to.Read(ctx, namespace, refs, records); err != nil {
		return nil, err
	}
	for i := range records {
		if records[i].Limits.Len() > 0 {
			return records[i].Limits, nil
		}
	}
	return nil, nil
}

// charges returns the spends that lower each balance to the one of the set, refilled to now.
func (r *run) charges(b *Balance, have []limiter.Spend) []limiter.Spend {
	var charges []limiter.Spend
	now := r.o.Now().UnixMilli()
	for i := range have {
		if !have[i].Held {
			continue
		}
		for j := range b.Limits {
			if l := &b.Limits[j]; l.Name == have[i].Limit {
				params := have[i].Limits.Params(have[i].Index)
				over := have[i].Bucket.Refill(params, now).Tokens - l.Bucket.Refill(l.Params, now).Tokens
				if over > slack {
					charges = append(charges, limiter.Spend{Limit: l.Name, Charge: over})
				}
			}
		}
	}
	return charges
}
