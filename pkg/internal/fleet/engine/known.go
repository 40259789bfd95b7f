package engine

import (
	"context"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Shards returns the indexes of the shards of a bucket, in order, as this process last saw
// them. First is the one that its next request is sent to. A bucket that was never split has
// the shard 0 alone. Errors are those of Config.Namespace.
func (e *Engine) Shards(ctx context.Context, bucket limiter.BucketKey) (all []int, first int, err error) {
	id, err := e.cfg.Namespace(ctx, bucket.Namespace)
	if err != nil {
		return nil, 0, err
	}
	t := e.forest.Find(&ShardID{Namespace: id, Bucket: bucket})
	if t == nil {
		return []int{0}, 0, nil
	}
	leaves := t.Leaves()
	for i := range leaves {
		all = append(all, leaves[i].Index)
	}
	return all, t.First(leaves, e.cfg.Now()).Index, nil
}
