package reservation

import (
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// DefaultEstimates is the default number of keys of [NewEstimates].
const DefaultEstimates = 100_000

// Key identifies an estimate. Names are any bytes.
type Key struct{ Namespace, Entity, Resource, Limit string }

// Estimates estimates, for each [Key], the use of a request: the 90th percentile of earlier
// settlements, where old ones fade. It is safe for concurrent use; only [NewEstimates] makes one.
//
// # The formula
//
// An observation has the weight 1. Whenever the weights of a key add up to 256, all are halved.
// This is after every 128 observations. Let T be the sum of all weights. Let q(w) be the least
// observed number for which the weights of those up to it are at least w. The estimate E is within
//
//	q(0.9·T)  ≤  E  ≤  9/8 · q(0.9·T + 1)
//
// so it is never less than the exact quantile. The right side allows for two roundings. Numbers are
// counted in buckets, of which E is the greatest number: less than 1/8 above the least, and equal
// to it below 16 millitokens. Halving whole counts moves the quantile by less than one observation.
// When a key starts to use more, its estimate follows within 32 observations; when it starts to use
// less, within 512. If every observation were greater, no estimate would be less.
//
// Both parts are well known. Logarithmic buckets with linear steps are those of HdrHistogram, and
// halving is exponential decay by count rather than by time. So a key that is seldom used retains
// its observations, and no clock is read.
//
// # Memory
//
// A key takes about 0.6 KiB: 4 bytes for each bucket with a count, at most 1 KiB, and its names. A
// name of more than 256 bytes is stored as its beginning and its SHA-256. Estimates end with the
// process.
type Estimates struct {
	mu   sync.Mutex
	keys *simplelru.LRU[Key, *histogram]
}

// NewEstimates returns estimates for so many keys; 0, or less, means [DefaultEstimates]. Beyond
// that the least recently used key is dropped.
func NewEstimates(most int) *Estimates {
	if most <= 0 {
		most = DefaultEstimates
	}
	keys, _ := simplelru.NewLRU[Key, *histogram](most, nil) // fails for a size below 1 only
	return &Estimates{keys: keys}
}

// Observe counts the use of one request, in millitokens. It is cut to 0 and tokenbucket.MaxAmount.
// Observe retains no memory of k's names.
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

// Estimate returns the expected use of a request, in millitokens; see [Estimates] for the formula.
// It is not known before 8 observations of the key.
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
	return Key{limiter.ShortName(k.Namespace), limiter.ShortName(k.Entity), limiter.ShortName(k.Resource), limiter.ShortName(k.Limit)}
}

// clone returns the key with copied names: those of a request would retain its whole message.
func (k Key) clone() Key {
	return Key{strings.Clone(k.Namespace), strings.Clone(k.Entity), strings.Clone(k.Resource), strings.Clone(k.Limit)}
}
