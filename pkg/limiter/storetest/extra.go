package storetest

import (
	"errors"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// hour is in milliseconds.
const hour = 3_600_000

// extra has a top-up keep its excess.
func extra(op limiter.Op, n int64) limiter.Adjustment {
	return limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp, Tokens: tokens(n), Excess: limiter.ExcessKept}
}

// checkExtra: a top-up adds tokens above the capacity. Requests use them first, also one for more than the capacity,
// refill leaves them, and tokens given back add to them.
func checkExtra(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(6)})
	c.want(true, 0, op)
	a := extra(op, 25)
	a.Once, a.DryRun = "invoice", true
	for _, repeated := range []bool{false, false, true} {
		out := adjust(t, s, a)
		if out.Repeated != repeated || !repeated && (a.Unfit(out.Booked) || !slices.Equal(out.Booked, []limiter.Booking{{Limit: "l", Tokens: tokens(25)}}) || out.After.Limits[0].Tokens != tokens(29)) {
			t.Fatalf("a top-up above the capacity, dry run %v: %+v", a.DryRun, out)
		}
		a.DryRun = false
	}
	c.wantBalance(tokens(29), 0, op)
	c.wantBalance(tokens(29), 48*hour, op)
	c.want(true, 48*hour, spending(op, limiter.Spend{Limit: "l", Take: tokens(15)}))
	c.wantBalance(tokens(14), 72*hour, op)
	c.want(true, 72*hour, spending(op, limiter.Spend{Limit: "l", Refund: tokens(2)}))
	c.wantBalance(tokens(16), 72*hour, op)
	c.want(false, 72*hour, spending(op, limiter.Spend{Limit: "l", Take: tokens(17)}))
	c.want(true, 72*hour, spending(op, limiter.Spend{Limit: "l", Take: tokens(8), Charge: tokens(3)}))
	c.wantBalance(tokens(5), 72*hour, op)
	c.wantBalance(tokens(10), 96*hour, op)
}

// checkExtraAdjusted: the other adjustments of a balance above the capacity.
func checkExtraAdjusted(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)})
	c.want(true, 0, op)
	for i, step := range []struct {
		a    limiter.Adjustment
		want int64
	}{
		{extra(op, 6), 15},
		{limiter.Adjustment{}, 15}, // a reset
		{limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: tokens(1)}, 15},
		{upToCapacity(limiter.Adjustment{Kind: limiter.AdjustTopUp, Tokens: tokens(1)}), 15},
		{extra(op, 5), 20},
		{limiter.Adjustment{Kind: limiter.AdjustTakeOut, Tokens: tokens(3)}, 17},
		{limiter.Adjustment{Kind: limiter.AdjustTakeOut, Tokens: tokens(9)}, 8},
		{extra(op, 4), 12},
		{limiter.Adjustment{Kind: limiter.AdjustSet, Tokens: tokens(9)}, 9},
		{extra(op, 1), 10},
		{extra(op, 1), 11},
	} {
		step.a.Bucket = op.Bucket
		out := adjust(t, s, step.a)
		if out.After.Limits[0].Tokens != tokens(step.want) {
			t.Fatalf("step %d, %s: %+v, want %d", i, step.a.Kind.Action(), out, step.want)
		}
		c.wantBalance(tokens(step.want), 0, op)
	}
	a := extra(op, tokenbucket.MaxAmount/limiter.Milli)
	a.Once = "too many"
	for range 2 {
		if out, err := s.AdjustBucket(t.Context(), at(0), a); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("above the range of a balance: %+v, %v; want %q", out, err, limiter.ErrInvalid)
		}
	}
	c.wantBalance(tokens(11), 0, op)
}

// checkExtraUnderChange: a change of the limit keeps the extra. A limit that carries use of a greater one has none.
func checkExtraUnderChange(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(4)})
	c.want(true, 0, op)
	adjust(t, s, extra(op, 10)) // 16
	for i, step := range []struct{ capacity, want int64 }{{5, 11}, {20, 26}, {10, 16}} {
		op = under(op, uint64(i+2), c.limits(limiter.PerDay("l", step.capacity))) // #nosec G115 -- few
		c.wantBalance(tokens(step.want), 0, op)
	}
	c.want(true, 0, spending(op, limiter.Spend{Limit: "l", Take: tokens(16)}))
	op = under(op, 9, c.limits(limiter.PerDay("l", 2)))
	c.wantBalance(0, 0, op)
	if out, err := s.AdjustBucket(t.Context(), at(0), extra(op, 3)); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("above the capacity beside use of a greater one: %+v, %v; want %q", out, err, limiter.ErrInvalid)
	}
	adjust(t, s, extra(op, 2))
	c.wantBalance(tokens(2), 0, op)
}

// checkExtraRolledBack: a request that another bucket denies takes nothing from an extra.
func checkExtraRolledBack(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("child", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)})
	parent := c.one("parent", limiter.PerDay("l", 3), limiter.Spend{Take: tokens(1)})
	c.want(true, 0, op, parent)
	adjust(t, s, extra(op, 3)) // 12
	for _, n := range []int64{1, 2, 5, 12} {
		c.want(false, 0, spending(op, limiter.Spend{Limit: "l", Take: tokens(n)}), spending(parent, limiter.Spend{Limit: "l", Take: tokens(3)}))
		c.wantBalance(tokens(12), 0, op)
	}
}
