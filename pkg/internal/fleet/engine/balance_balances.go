package engine

import (
	"context"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Observer is told of items that are changed beside an engine, as [Engine] is. ns is the id of a namespace.
type Observer interface {
	Changed(ns string, of limiter.BucketKey, shard int)
	Saw(ns string, of limiter.BucketKey, image *schema.Bucket, sent time.Time)
}

// BalancesConfig configures balances. Items, Table, Buckets and Engine must be set.
type BalancesConfig struct {
	Items awsdb.Items // it must not retry
	Table string
	// Buckets finds the items and commits changes.
	Buckets *catalog.Buckets
	// Engine returns the engine of the buckets. It is told which items were changed, and which have
	// a split or a merge that was not finished.
	Engine func() Observer
	Clock  *awsdb.Clock     // corrects the callers' clocks; nil = they are taken as they are
	Loop   awsdb.Loop       // by which it waits; nil = awsdb.Goroutines
	Now    func() time.Time // the machine's clock; nil = time.Now
}

// Balances implements limiter.Buckets. It is safe for concurrent use, and holds nothing that
// is to be closed.
type Balances struct{ cfg BalancesConfig }

// NewBalances returns balances. It makes no call.
func NewBalances(cfg BalancesConfig) *Balances {
	if cfg.Loop == nil {
		cfg.Loop = awsdb.Goroutines{}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Balances{cfg}
}

// time returns the time of the buckets at a caller's time, Unix ms. While the clock is not
// trusted nothing is refilled: it is before all times of buckets.
func (b *Balances) time(now time.Time) int64 {
	if b.cfg.Clock.Reading().Doubtful {
		return schema.MinTime
	}
	return b.cfg.Clock.Correct(now).UnixMilli()
}

// ListBuckets implements limiter.Buckets. A balance is that of the table; replicas may have
// leases besides. While a bucket is split or merged, tokens on their way are missing.
func (b *Balances) ListBuckets(ctx context.Context, now time.Time, namespace string, f limiter.BucketFilter, p limiter.Page) (limiter.PageOf[limiter.BucketState], error) {
	found, err := b.cfg.Buckets.List(ctx, namespace, f, p)
	page := limiter.PageOf[limiter.BucketState]{Next: found.Next}
	at := b.time(now)
	for i := range found.Items {
		if leaves, _ := schema.Leaves(found.Items[i].Items); len(leaves) > 0 {
			page.Items = append(page.Items, stateOf(found.Items[i].Key, leaves, at))
		}
	}
	return page, err
}

// stateOf returns a bucket at a time.
func stateOf(key limiter.BucketKey, leaves []*schema.Bucket, at int64) limiter.BucketState {
	state := limiter.BucketState{Key: key, Limits: plan.Balances(leaves, at), Shards: len(leaves)}
	for _, b := range leaves {
		state.Leases += b.Holders()
	}
	return state
}

// AdjustBucket implements limiter.Buckets by one transaction, after leases were recalled
// where it depends on them. Without a deadline it takes at most catalog.ChangeTimeout.
func (b *Balances) AdjustBucket(ctx context.Context, now time.Time, a limiter.Adjustment) (limiter.Adjusted, error) {
	if err := a.Check(); err != nil {
		return limiter.Adjusted{}, err
	}
	of := &a.Bucket
	of.Namespace, of.Entity, of.Resource = strings.Clone(of.Namespace), strings.Clone(of.Entity), strings.Clone(of.Resource)
	a.Limit, a.Once = strings.Clone(a.Limit), strings.Clone(a.Once)
	ns, err := b.cfg.Buckets.Namespace(ctx, of.Namespace)
	if err != nil || ns.ID == "" {
		return limiter.Adjusted{}, err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = b.cfg.Loop.Within(ctx, catalog.ChangeTimeout)
		defer cancel()
	}
	t := newAdjustment(b, ns, now, &a)
	defer t.dismiss(ctx)
	return t.run(ctx)
}
