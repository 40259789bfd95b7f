package limiter

import lru "github.com/hashicorp/golang-lru/v2"

// shareCache keeps the scaled form of limits, which is costly to make.
type shareCache struct{ sets *lru.Cache[shareKey, *Limits] }

type shareKey struct {
	hash  uint64
	share int64
}

func newShareCache() *shareCache {
	sets, _ := lru.New[shareKey, *Limits](1024) // fails for a size below 1 only
	return &shareCache{sets: sets}
}

func (c *shareCache) of(limits *Limits, share int64) *Limits {
	key := shareKey{limits.Hash(), share}
	if s, ok := c.sets.Get(key); ok {
		return s
	}
	s := limits.Scale(share)
	c.sets.Add(key, s)
	return s
}
