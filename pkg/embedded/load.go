package embedded

import (
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Recovery is what opening a store found of the life before.
type Recovery struct {
	Buckets int   // that the file had
	Crashed bool  // the life before did not end in order
	Blocks  int   // of limits, that were being handed out then
	Lost    int64 // millitokens in them: at most so many were not taken, and are lost
}

// load reads the buckets, as they may be now.
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
