package embedded

import (
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Recovery is the result of opening a store.
type Recovery struct {
	Buckets int   // in the file
	Crashed bool  // the last shutdown was unclean
	Blocks  int   // of limits, that were open at that time
	Lost    int64 // millitokens in these blocks: the most that is lost without having been taken
}

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
		found.Lost = limiter.SaturatingSum(found.Lost, r.recover(now))
		hash, sh := t.hashOf(r.bucket)
		r.next = sh.buckets[hash]
		sh.buckets[hash] = r.bucket
		t.count(r.bucket, 1)
		return nil
	})
	return found, err
}
