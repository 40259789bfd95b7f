package reservation

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A histogram counts observations in buckets as those of an HDR histogram. Numbers below 16 have
// one each, and from there every doubling has 8 of the same width. So the greatest number of a
// bucket is less than 1/8 above its least.
const (
	precision = 3   // 2^precision buckets a doubling
	window    = 256 // observations after which all counts are halved
	enough    = 8   // observations that make an estimate
)

// histogram is a histogram with decay. After a window of observations all counts are halved. So an
// observation weighs half as much for each half window after it. Only buckets with a count take
// memory, at most one for each observation of the window.
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

// halve halves the counts. It rounds the number of observations up to a bucket, not that of each
// bucket, which would drop all single ones. So the number up to a bucket is less than one
// observation below the exact one. This holds after any number of halvings, and the total is exact.
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

// quantile returns the greatest number of the bucket with the 90th percentile. That is the first
// bucket that, with those below it, has nine tenths of the total.
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
