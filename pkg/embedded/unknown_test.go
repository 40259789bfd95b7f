package embedded

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// After a commit of unknown outcome the bucket covers no more than either state, the one before and
// the one that was written. A file that is found corrupt means the same as a failed fsync.
func TestACommitOfUnknownOutcomeCoversTheLess(t *testing.T) {
	limits := limitsOf(t, limiter.PerHour("l", 100))
	for name, tt := range map[string]struct {
		err  error
		left int64
	}{
		"no space":  {datafile.ErrFull, 5},
		"fsync":     {datafile.ErrUncertain, 3},
		"corrupt":   {datafile.ErrCorrupt, 3},
		"read only": {datafile.ErrReadOnly, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := openStill(t, t.TempDir(), Config{Now: func() time.Time { return t0 }})
			take := func(n int64) bool {
				op := opOf("a", limits, n)
				got, err := s.tryOne(t0.UnixMilli(), &op)
				if err != nil {
					t.Fatal(err)
				}
				return got.done
			}
			take(20)
			d.writeNext() // a block of 20
			if !take(15) {
				t.Fatal("a block of 20 does not cover 15")
			}
			take(50) // which waits for the next one
			n := d.take()
			d.collect(n)
			next := n.buckets[0].bucket.block.span(0)
			next.nextSize, next.nextSpent = 3*limiter.Milli, 0
			d.conclude(n, tt.err)
			close(n.done)
			left := int64(0)
			for take(1) {
				left++
			}
			if left != tt.left {
				t.Errorf("%d tokens are covered, want %d", left, tt.left)
			}
		})
	}
}
