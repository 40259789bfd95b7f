package lane

import (
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Site says where the shards of a bucket are.
type Site struct {
	Namespace string // id of the namespace
	Bucket    limiter.BucketKey
}

// Key returns the key of a shard.
func (s *Site) Key(index int) schema.Key {
	return schema.BucketKey(s.Namespace, s.Bucket, index)
}

// clone returns the site in memory of its own.
func (s *Site) clone() Site {
	c := Site{Namespace: strings.Clone(s.Namespace), Bucket: s.Bucket}
	c.Bucket.Namespace, c.Bucket.Entity, c.Bucket.Resource = strings.Clone(s.Bucket.Namespace), strings.Clone(s.Bucket.Entity), strings.Clone(s.Bucket.Resource)
	return c
}

// place is that of one item: two places are the same where the keys of their items are.
type place struct {
	namespace, entity, resource string
	variant                     uint64
	window                      limiter.Window
	index                       int
}

func (s *Site) place(index int) place {
	return place{s.Namespace, s.Bucket.Entity, s.Bucket.Resource, s.Bucket.Variant, s.Bucket.Window, index}
}

// Sight is the state in which a lane saw its item.
type Sight struct {
	State *schema.Bucket // nil = there is no item
	At    time.Time
	Quiet time.Time // since when the item has been used little
}
