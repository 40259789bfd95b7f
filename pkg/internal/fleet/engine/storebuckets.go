package engine

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

var _ limiter.Buckets = (*Store)(nil)

// ListBuckets implements limiter.Buckets by one query and one batch of reads for a page, and a
// batch for each bucket of several shards. Balances are those of the table, of all shards
// together; tokens on lease are in limiter.LimitState.Leased. A bucket of the last second may
// be missing.
func (s *Store) ListBuckets(ctx context.Context, now time.Time, namespace string, f limiter.BucketFilter, p limiter.Page) (limiter.PageOf[limiter.BucketState], error) {
	return s.balances.ListBuckets(ctx, now, namespace, f, p)
}

// AdjustBucket implements limiter.Buckets by one transaction over all shards of the bucket, the
// audit event and the key. A reset or a set recalls the leases of the bucket first. So does a
// top-up or a take-out for which the table alone has too little room or tokens. That takes as
// long as holders need for their next write, mostly below 2.5 s. Leases that are not back after
// 3.5 s count as full. It takes at most 10 s.
func (s *Store) AdjustBucket(ctx context.Context, now time.Time, a limiter.Adjustment) (limiter.Adjusted, error) {
	if err := a.Check(); err != nil {
		return limiter.Adjusted{}, err
	}
	ctx, end, err := s.begin(ctx, catalog.ChangeTimeout)
	if err != nil {
		return limiter.Adjusted{}, err
	}
	defer end()
	return s.balances.AdjustBucket(ctx, now, a)
}
