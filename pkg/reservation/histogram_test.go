package reservation

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// The buckets follow one another without a gap, and none is wider than an eighth.
func TestBuckets(t *testing.T) {
	last := bucketOf(tokenbucket.MaxAmount)
	t.Logf("%d buckets", last+1)
	least := int64(0)
	for b := range last + 1 {
		greatest := greatestOf(b)
		if bucketOf(least) != b || bucketOf(greatest) != b {
			t.Fatalf("bucket %d: its least %d is in bucket %d, its greatest %d in %d", b, least, bucketOf(least), greatest, bucketOf(greatest))
		}
		if width := greatest - least; width > least/8 {
			t.Errorf("bucket %d: from %d to %d is wider than an eighth", b, least, greatest)
		}
		least = greatest + 1
	}
	if got := least - 1; got != tokenbucket.MaxAmount {
		t.Errorf("the last bucket ends at %d, want %d", got, int64(tokenbucket.MaxAmount))
	}
}

// exact is the reference: every observation with its weight, in units of 2^-40.
type exact struct {
	seen   []int64
	weight []int64
	total  int64
}

const one = int64(1) << 40

func (e *exact) observe(n int64) {
	e.seen, e.weight = append(e.seen, n), append(e.weight, one)
	e.total += one
	if e.total == window*one {
		e.total = 0
		for i := range e.weight {
			e.weight[i] /= 2
			e.total += e.weight[i]
		}
	}
}

// quantile returns the least observed number such that those up to it weigh at least tenths/10. If
// all weigh less it returns the greatest.
func (e *exact) quantile(tenths int64) int64 {
	order := make([]int, len(e.seen))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(e.seen[a], e.seen[b]) })
	upTo := int64(0)
	for _, i := range order {
		upTo += e.weight[i]
		if 10*upTo >= tenths {
			return e.seen[i]
		}
	}
	return e.seen[order[len(order)-1]]
}

// genStream returns a source of observations, cheap also for long streams: a few numbers often, the
// others anywhere in a range.
func genStream(t *rapid.T) func() int64 {
	most := rapid.SampledFrom([]int64{3, 40, 1000, 5_000_000, tokenbucket.MaxAmount}).Draw(t, "most")
	often := rapid.Int64Range(0, most).Draw(t, "often")
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "random"), 0))
	return func() int64 {
		switch random.IntN(4) {
		case 0:
			return often
		case 1:
			return random.Int64N(most + 1)
		default:
			return random.Int64N(most+1) >> random.IntN(60)
		}
	}
}

func TestCountsFitTheirMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h histogram
		next := genStream(t)
		for range 3 * window {
			h.observe(next())
			sum := 0
			for i, c := range h.counts {
				sum += int(c.n)
				if c.n == 0 || i > 0 && h.counts[i-1].bucket >= c.bucket {
					t.Fatalf("the counts are not in order, or count nothing: %v", h.counts)
				}
			}
			if sum != h.total || sum >= window || cap(h.counts) > window {
				t.Fatalf("%d observations in %d places; total %d; want fewer than %d", sum, cap(h.counts), h.total, window)
			}
		}
	})
}

func TestEstimateIsWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h histogram
		var ref exact
		for range 6 {
			next := genStream(t)
			for range rapid.IntRange(1, window).Draw(t, "observations") + window/4 {
				n := next()
				h.observe(n)
				ref.observe(n)
			}
			got, least, most := h.quantile(), ref.quantile(9*ref.total), ref.quantile(9*ref.total+10*one)
			if len(ref.seen) < window {
				most = least // nothing was halved yet
			}
			if got < least || got > most+most/8 {
				t.Fatalf("after %d observations the estimate is %d, want %d to 9/8 of %d", len(ref.seen), got, least, most)
			}
		}
	})
}

// Greater observations never give a smaller estimate.
func TestEstimateIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var less, more histogram
		next, add := genStream(t), genStream(t)
		for i := range 4 * window {
			n := next()
			less.observe(n)
			more.observe(min(n+add(), tokenbucket.MaxAmount))
			if less.quantile() > more.quantile() {
				t.Fatalf("after %d observations %d is above %d, which is of greater ones", i+1, less.quantile(), more.quantile())
			}
		}
	})
}

// After any number of earlier observations, the estimate follows a shift in time.
func TestEstimateFollowsAShift(t *testing.T) {
	const low, high = 200_000, 8_000_000
	followed := func(before int, from, to int64) int {
		var h histogram
		for range before {
			h.observe(from)
		}
		for i := 1; i <= 10*window; i++ {
			h.observe(to)
			if got := h.quantile(); got >= to && got <= to+to/8 {
				return i
			}
		}
		return math.MaxInt
	}
	rises, falls := 0, 0
	for before := 1; before <= 3*window; before++ {
		rises = max(rises, followed(before, low, high))
		falls = max(falls, followed(before, high, low))
	}
	t.Logf("rises within %d observations, falls within %d", rises, falls)
	if rises > 32 || falls > 512 {
		t.Errorf("a rise is followed within %d observations, want 32; a fall within %d, want 512", rises, falls)
	}
}
