package limiter

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A denial is cached between half of maxDenial and all of it. So a storm of denials costs nothing,
// and tokens that another replica refunds are missed for a short time only. The jitter keeps
// replicas and clients with fixed periods out of step.
const maxDenial = time.Second

// denyCache caches exhausted buckets, so that a storm of denials causes no calls of a remote store.
// It stores the bucket's state, not a time: a denial and its end are computed for the amount of
// each request. It is right by all that this process has seen. Refunds by other processes can be
// missed for at most maxDenial and one budget. Losing an entry costs a call to the store.
type denyCache struct {
	probe time.Duration // time for the one request that asks the store

	mu      sync.Mutex
	entries *lru.Cache[denyKey, denial]
}

type denyKey struct {
	bucket BucketKey
	limit  string
}

type denial struct {
	limits *Limits
	index  int
	bucket tokenbucket.Bucket
	until  time.Time
}

// denyKeyOf returns the key of a limit of a bucket; long names are short in it.
func denyKeyOf(bucket BucketKey, limit string) denyKey {
	bucket.Entity, bucket.Resource = ShortName(bucket.Entity), ShortName(bucket.Resource)
	return denyKey{bucket, limit}
}

// clone returns a key that shares no memory with a request.
func (k denyKey) clone() denyKey {
	k.limit = strings.Clone(k.limit)
	k.bucket.Namespace = strings.Clone(k.bucket.Namespace)
	k.bucket.Entity = strings.Clone(k.bucket.Entity)
	k.bucket.Resource = strings.Clone(k.bucket.Resource)
	return k
}

// newDenyCache returns nil, which caches nothing, for a size below 0.
func newDenyCache(size int, probe time.Duration) *denyCache {
	if size < 0 {
		return nil
	}
	if size == 0 {
		size = DefaultDenyCacheSize
	}
	c := &denyCache{probe: probe}
	c.entries, _ = lru.New[denyKey, denial](size) // fails for a size below 1 only
	return c
}

func (c *denyCache) purge() { c.entries.Purge() }

// deny reports whether a limit of the ops is exhausted by the cache, and fills in those as the
// store would. When an entry expires, one request asks the store. The others are denied until its
// answer comes, or its budget is over.
func (c *denyCache) deny(now time.Time, ops []Op) bool {
	for i := range ops {
		for j := range ops[i].Spends {
			if sp := &ops[i].Spends[j]; sp.Charge > 0 || sp.Refund > 0 {
				return false // must reach the store in any case
			}
		}
	}
	denied := false
	for i := range ops {
		for j := range ops[i].Spends {
			denied = c.exhausted(now, &ops[i], &ops[i].Spends[j]) || denied
		}
	}
	return denied
}

// exhausted reports whether the cache denies a spend, and if so fills it in as the store would.
func (c *denyCache) exhausted(now time.Time, op *Op, sp *Spend) bool {
	key := denyKeyOf(op.Bucket, sp.Limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries.Get(key)
	if !ok || e.limits.Hash() != op.Limits.Hash() {
		return false
	}
	p := e.limits.Params(e.index)
	b := e.bucket.Refill(p, now.UnixMilli())
	if b.Tokens >= sp.need() {
		return false
	}
	if !now.Before(e.until) {
		e.until = now.Add(c.probe)
		c.entries.Add(key, e)
		return false
	}
	sp.Held, sp.Exceeded, sp.Limits, sp.Index, sp.Bucket = true, true, e.limits, e.index, b
	return true
}

// learn caches the store's answer for each spend: exhausted, or not any more.
func (c *denyCache) learn(now time.Time, ops []Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range ops {
		op := &ops[i]
		if op.Late || op.ByShare { // rule: an answer that is not the bucket's state is not cached
			continue
		}
		for j := range op.Spends {
			sp := &op.Spends[j]
			key := denyKeyOf(op.Bucket, sp.Limit)
			if !sp.Exceeded {
				c.entries.Remove(key)
				continue
			}
			c.entries.Add(key.clone(), denial{
				limits: sp.Limits, index: sp.Index, bucket: sp.Bucket,
				until: now.Add(maxDenial/2 + rand.N(maxDenial/2)), // #nosec G404 -- jitter
			})
		}
	}
}
