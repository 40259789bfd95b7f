package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Site says where the shards of a bucket are.
type Site struct {
	Namespace string // id of the namespace
	Bucket    limiter.BucketKey
}

// Key returns the key of a shard.
func (s *Site) Key(index int) schema.Key {
	return schema.BucketKey(s.Namespace, s.Bucket.Entity, s.Bucket.Resource, s.Bucket.Variant, index)
}

// Sight is the state in which a lane saw its item.
type Sight struct {
	State *schema.Bucket // nil = there is no item
	At    time.Time
	Quiet time.Time // since when the item has been used little
}
