package admin

import (
	"context"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Sharder is a store whose buckets can have several shards; *dynamo.Store is one.
type Sharder interface {
	// Shards returns the indexes of the shards of a bucket, in order, as this process last saw
	// them. first is the shard that gets its next request.
	Shards(ctx context.Context, bucket limiter.BucketKey) (all []int, first int, err error)
}

// Shards are the shards of a bucket, as the explaining replica last saw them. Other replicas may
// have another first shard.
type Shards struct {
	All   []int `json:"all"`   // indexes, in order
	First int   `json:"first"` // the member of All that this replica takes from first
}

// addShards adds the shards of the buckets of a request, if the store has shards.
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
		b.shards[b.bucketLimit(s)] = &Shards{All: all, First: first}
	}
	return nil
}
