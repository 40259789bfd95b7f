package admin

import (
	"context"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Sharder is a store that keeps a bucket in one shard or in several; *dynamo.Store is one.
type Sharder interface {
	// Shards returns the indexes of the shards of a bucket, in order, as far as this process
	// knows. First is the one that its next request is sent to.
	Shards(ctx context.Context, bucket limiter.BucketKey) (all []int, first int, err error)
}

// Shards are the shards of a bucket, as far as the replica that explains knows. Other replicas
// may ask another one first.
type Shards struct {
	All   []int `json:"all"`   // indexes, in order
	First int   `json:"first"` // of All: this replica takes from it first
}

// addShards adds the shards of the buckets that were asked, in a store that has some.
func (b *balances) addShards(ctx context.Context, store Sharder) error {
	if store == nil {
		return nil
	}
	b.shards = make(map[bucketLimit]*Shards)
	for i := range b.decision.Statuses {
		s := &b.decision.Statuses[i]
		bucket, ok := b.decision.BucketOf(s)
		if !ok {
			continue
		}
		all, first, err := store.Shards(ctx, bucket)
		if err != nil {
			return err
		}
		b.shards[bucketLimitOf(&b.takes[s.Take], s)] = &Shards{All: all, First: first}
	}
	return nil
}
