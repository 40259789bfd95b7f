package reservation

import (
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/ratelimit/ratelimit/internal/shortname"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// DefaultEstimates is how many keys [NewEstimates] remembers when it is not told.
const DefaultEstimates = 100_000

// Key is what an estimate is of. Names are any bytes.
type Key struct{ Namespace, Entity, Resource, Limit string }

// Estimates knows, for each [Key], how much requests used before: the 90th
// percentile of what was settled, where what is old fades. It is safe for
// concurrent use; only [NewEstimates] makes one.
//
// # The formula
//
// An observation comes with the weight 1. Whenever the weights of a key add up to
// 256 all are halved, which is after every 128 observations. Let q(w) be the least
// observed number such that the weights of those up to it are at least w, and T the
// sum of all weights. The estimate E is within
//
//	q(0.9·T)  ≤  E  ≤  9/8 · q(0.9·T + 1)
//
// so it is never less than the exact quantile. The right side is for two roundings:
// numbers are counted in buckets, of which E is the greatest number, less than 1/8
// above the least (and the same below 16 millitokens); and halving whole counts moves
// the quantile by less than one observation. When a key starts to use more, its
// estimate follows within 32 observations; when it starts to use less, within 512.
// If every observation were greater, no estimate would be less.
//
// Both parts are well known: logarithmic buckets with linear steps are those of
// HdrHistogram, and halving is exponential decay by count rather than by time. So a
// key that is seldom used does not forget what it used, and no clock is read.
//
// # Memory
//
// A key takes about 0.6 KiB: 4 bytes for each bucket that counts something, at most
// 1 KiB, and its names. Of a name of more than 256 bytes its beginning and its
// SHA-256 are kept. What was learned is lost with the process.
type Estimates struct {
	mu   sync.Mutex
	keys *simplelru.LRU[Key, *histogram]
}

// NewEstimates returns estimates that remember so many keys; 0, or less, means
// [DefaultEstimates]. Beyond that the key that was neither observed nor asked for
// the longest is forgotten.
func NewEstimates(most int) *Estimates {
	if most <= 0 {
		most = DefaultEstimates
	}
	keys, _ := simplelru.NewLRU[Key, *histogram](most, nil) // fails for a size below 1 only
	return &Estimates{keys: keys}
}

// Observe counts what one request used, in millitokens: 0 to tokenbucket.MaxAmount,
// other numbers are cut to it. It keeps no memory of k's names.
func (e *Estimates) Observe(k Key, millitokens int64) {
	k = k.short()
	e.mu.Lock()
	defer e.mu.Unlock()
	h, ok := e.keys.Get(k)
	if !ok {
		h = new(histogram)
		e.keys.Add(k.clone(), h)
	}
	h.observe(min(max(millitokens, 0), tokenbucket.MaxAmount))
}

// Estimate returns what a request will use, in millitokens; see [Estimates] for the
// formula. It is not known before 8 observations of the key.
func (e *Estimates) Estimate(k Key) (millitokens int64, known bool) {
	k = k.short()
	e.mu.Lock()
	defer e.mu.Unlock()
	h, ok := e.keys.Get(k)
	if !ok || h.total < enough {
		return 0, false
	}
	return h.quantile(), true
}

// short returns the key with long names in their short form.
func (k Key) short() Key {
	return Key{shortname.Of(k.Namespace), shortname.Of(k.Entity), shortname.Of(k.Resource), shortname.Of(k.Limit)}
}

// clone returns the key with names of its own: those of a request would keep all
// of its message in memory.
func (k Key) clone() Key {
	return Key{strings.Clone(k.Namespace), strings.Clone(k.Entity), strings.Clone(k.Resource), strings.Clone(k.Limit)}
}
