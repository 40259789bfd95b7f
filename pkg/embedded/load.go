package embedded

import (
	"math"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Recovery is the result of opening a store.
type Recovery struct {
	Buckets int   // in the file
	Crashed bool  // the last shutdown was unclean
	Blocks  int   // of limits, that were open at that time
	Lost    int64 // millitokens in these blocks: the most that is lost without having been taken

	// Behind is how far the clock is behind the newest balance in the file, at most a year; 0 = it is
	// not. The downtime is not refilled then; refill follows the clock as it is now.
	Behind time.Duration
}

// maxBehind bounds Recovery.Behind, which a damaged clock could make longer than a duration can be.
const maxBehind = 365 * 24 * time.Hour

// load reads the buckets, and refills them to now.
func (t *table) load(tx *datafile.Tx, now int64) (found Recovery, err error) {
	shared := make(map[string]*limiter.Limits)
	err = tx.Each(datafile.Buckets, nil, func(key, value []byte) error {
		r, err := parseBucket(key, value, shared)
		if err != nil {
			return err
		}
		found.Buckets++
		for _, size := range r.sizes {
			if size > 0 {
				found.Blocks++
			}
		}
		found.Behind = max(found.Behind, behind(r.newest(), now))
		found.Lost = limiter.SaturatingSum(found.Lost, r.recover(now))
		hash, sh := t.hashOf(r.bucket)
		r.next = sh.buckets[hash]
		sh.buckets[hash] = r.bucket
		t.count(r.bucket, 1)
		return nil
	})
	return found, err
}

// behind returns how far now is behind a time; both are in milliseconds.
func behind(newest, now int64) time.Duration {
	if newest <= now {
		return 0
	}
	ahead := uint64(newest) - uint64(now)                                                   // #nosec G115 -- exact modulo 2^64, and above 0
	return time.Duration(min(ahead, uint64(maxBehind/time.Millisecond))) * time.Millisecond // #nosec G115 -- bounded
}

// newest returns the latest time that a balance of the bucket was refilled to, in milliseconds.
func (r *restored) newest() int64 {
	at := int64(math.MinInt64)
	for i := range r.sizes {
		if !r.limits.Unlimited(i) {
			at = max(at, r.balance(i).Refilled)
		}
	}
	return at
}
