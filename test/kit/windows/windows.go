// Package windows checks admitted amounts against the bound of a token bucket: in
// every window of time at most its capacity and the refill of that time.
package windows

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Bucket has the parameters of a token bucket, for tests that import nothing of the program.
type Bucket = tokenbucket.Params

// Taking is an amount that was admitted at some moment of a call.
type Taking struct {
	From, To int64  // the whole call, in microseconds
	Amount   int64  // millitokens
	Replica  string // the replica of the call; [Check] does not use it
}

// Window is a span of time. It has the amount taken by calls that lie wholly in it,
// and the amount that a token bucket admits in it.
type Window struct {
	From, To        int64 // microseconds
	Taken, Admitted int64 // millitokens
}

// Excess is how many millitokens were taken beyond the bound of the bucket; below 0
// when it would have admitted more.
func (w Window) Excess() int64 { return w.Taken - w.Admitted }

// String describes the window.
func (w Window) String() string {
	return fmt.Sprintf("from %.6f s to %.6f s %d millitokens were taken, %d may be", float64(w.From)/1e6, float64(w.To)/1e6, w.Taken, w.Admitted)
}

// Found is the result of a check: the windows of a history against a bound.
type Found struct {
	Tightest Window // the one with the most taken beyond the bound, or the least below
	Broken   bool   // the tightest breaks the bound
	Last     Window // of those that break it, the one that begins last; tightest from there
}

// Check compares takings with a token bucket: for all s < t the amounts of the calls
// that lie wholly in [s, t] must be at most capacity + rate·(t−s+late).
//
// It is sound. A taking may be applied at any moment of its call, and a counted call
// lies in [s, t], so its taking was applied there. So a store that keeps the bound,
// by clocks that disagree by at most late, passes.
//
// It is complete, for that question. Only windows that begin with a from and end with
// a to of counted calls matter. Any other window can be cut to such a one, which
// counts the same calls and allows less. The sweep checks all of them: it goes
// through the calls by from, last first. It keeps the calls that it has passed in a
// tree in the order of to. With k of them up to a to, the tree has the greatest
// sum(k) − rate·to. With the sweep's from that is the worst window that begins there.
// Each step costs O(log n).
//
// It misses no large excess. When D is the longest call of a window, widen that window
// by D on both sides. The wider window counts every taking that was applied in the
// first, so no excess above rate·(2D+late) escapes.
func Check(p tokenbucket.Params, all []Taking, late time.Duration) (Found, error) {
	c, err := newWindowCheck(p, all)
	if err != nil || len(all) == 0 {
		return Found{}, err
	}
	room := c.unit*p.Capacity + p.Amount*late.Microseconds()
	var found Found
	worst, worstLast := int64(math.MinInt64), int64(0)
	for _, i := range c.byFrom {
		c.insert(i)
		from := all[i].From
		excess := c.best[1] + p.Amount*(from-c.origin) - room
		if excess > worst {
			worst = excess
			found.Tightest = c.window(from, late)
		}
		if excess > 0 && (!found.Broken || from == found.Last.From && excess > worstLast) {
			found.Broken, worstLast = true, excess
			found.Last = c.window(from, late)
		}
	}
	return found, nil
}

// windowCheck is the tree of a sweep, laid out as a heap with its leaves in the order
// of to. A node has the sum of the inserted amounts below it. It also has the
// greatest of (amounts up to a leaf − rate·to), over its inserted leaves. All is in
// units of one millitoken / (1000·period).
type windowCheck struct {
	params tokenbucket.Params
	all    []Taking
	unit   int64 // 1000·period: of a millitoken
	origin int64 // the earliest from
	byFrom []int // indexes of all, latest from first
	leaf   []int // of each of all
	byTo   []int // the inverse
	size   int   // leaves, a power of two
	sum    []int64
	best   []int64
}

// nothing is the best of a node that has no leaf: less than any, and far from overflow.
const nothing = math.MinInt64 / 2

func newWindowCheck(p tokenbucket.Params, all []Taking) (*windowCheck, error) {
	n := len(all)
	c := &windowCheck{params: p, all: all, unit: 1000 * p.Period, byFrom: make([]int, n), byTo: make([]int, n), leaf: make([]int, n)}
	c.size = 1 << bits.Len(uint(max(n, 1)-1))
	c.sum, c.best = make([]int64, 2*c.size), make([]int64, 2*c.size)
	var total, end int64
	c.origin = math.MaxInt64
	for i, t := range all {
		c.byFrom[i], c.byTo[i] = i, i
		total += t.Amount
		c.origin, end = min(c.origin, t.From), max(end, t.To)
	}
	const most = math.MaxInt64 / 8
	if n > 0 && (total > most/c.unit || p.Amount > 0 && end-c.origin > most/p.Amount || p.Capacity > most/c.unit) {
		return nil, fmt.Errorf("a history of %d millitokens in %d µs is too large for a period of %d ms and an amount of %d", total, end-c.origin, p.Period, p.Amount)
	}
	slices.SortFunc(c.byFrom, func(a, b int) int { return cmp.Compare(all[b].From, all[a].From) })
	slices.SortFunc(c.byTo, func(a, b int) int { return cmp.Compare(all[a].To, all[b].To) })
	for leaf, i := range c.byTo {
		c.leaf[i] = leaf
	}
	for i := range c.best {
		c.best[i] = nothing
	}
	return c, nil
}

// insert counts a taking from now on.
func (c *windowCheck) insert(i int) {
	node := c.size + c.leaf[i]
	c.sum[node] = c.unit * c.all[i].Amount
	c.best[node] = c.sum[node] - c.params.Amount*(c.all[i].To-c.origin)
	for node /= 2; node > 0; node /= 2 {
		left, right := 2*node, 2*node+1
		c.sum[node] = c.sum[left] + c.sum[right]
		c.best[node] = max(c.best[left], c.sum[left]+c.best[right])
	}
}

// window returns the worst window that begins at from, of the takings inserted.
func (c *windowCheck) window(from int64, late time.Duration) Window {
	node, before := 1, int64(0)
	for node < c.size {
		left, right := 2*node, 2*node+1
		if c.best[left] >= c.sum[left]+c.best[right] {
			node = left
		} else {
			node, before = right, before+c.sum[left]
		}
	}
	w := Window{From: from, To: c.all[c.byTo[node-c.size]].To, Taken: (before + c.sum[node]) / c.unit}
	hi, lo := bits.Mul64(uint64(c.params.Amount), uint64(w.To-from+late.Microseconds())) // #nosec G115 -- neither is below 0
	refill, _ := bits.Div64(hi, lo, uint64(c.unit))                                      // #nosec G115 -- above 0
	w.Admitted = c.params.Capacity + int64(refill)                                       // #nosec G115 -- newWindowCheck has refused too large histories
	return w
}
