package reservation

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A histogram counts observations in buckets as those of an HDR histogram: numbers
// below 16 have one each, and from there every doubling is cut into 8 of the same
// width. So the greatest number of a bucket is less than 1/8 above its least.
const (
	precision = 3   // 2^precision buckets a doubling
	window    = 256 // observations after which all counts are halved
	enough    = 8   // observations that make an estimate
)

// histogram is a histogram that forgets: when it has counted a window of
// observations, all counts are halved, so that an observation weighs half as much
// for each half window that came after it. Only buckets that count something take
// memory, which are never more than the window.
type histogram struct {
	counts []count // by bucket
	total  int     // their sum, below window
}

type count struct{ bucket, n uint16 }

// bucketOf returns the bucket of a number, which is 0 to tokenbucket.MaxAmount.
func bucketOf(n int64) uint16 {
	shift := max(0, bits.Len64(uint64(n))-precision-1) //nolint:gosec // n is not negative
	return uint16(int64(shift)<<precision + n>>shift)  //nolint:gosec // at most 461
}

// greatestOf returns the greatest number of a bucket.
func greatestOf(bucket uint16) int64 {
	const linear = 1 << (precision + 1)
	if bucket < linear {
		return int64(bucket)
	}
	shift := bucket>>precision - 1
	return min((int64(bucket-shift<<precision)+1)<<shift-1, tokenbucket.MaxAmount)
}

func (h *histogram) observe(n int64) {
	bucket := bucketOf(n)
	i, found := slices.BinarySearchFunc(h.counts, bucket, func(c count, b uint16) int { return cmp.Compare(c.bucket, b) })
	if !found {
		h.counts = slices.Insert(h.counts, i, count{bucket: bucket})
	}
	h.counts[i].n++
	h.total++
	if h.total == window {
		h.halve()
	}
}

// halve halves the counts. What is rounded is the number of observations up to a
// bucket, not that of each bucket, which would forget all that came once: so the
// number up to a bucket is less than one observation below the exact one, however
// often it is halved, and the total is exact.
func (h *histogram) halve() {
	var before, after uint16 // observations up to the bucket, before and after halving
	kept := h.counts[:0]
	for _, c := range h.counts {
		before += c.n
		c.n = before/2 - after
		if c.n > 0 {
			kept = append(kept, c)
		}
		after = before / 2
	}
	h.counts, h.total = kept, int(after)
}

// quantile returns the greatest number of the bucket that the 90th percentile is
// in: of the first that, with those below it, holds nine tenths of the total.
func (h *histogram) quantile() int64 {
	below := h.total
	for _, c := range slices.Backward(h.counts) {
		below -= int(c.n)
		if 10*below < 9*h.total {
			return greatestOf(c.bucket)
		}
	}
	return 0 // nothing was observed
}
