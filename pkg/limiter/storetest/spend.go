package storetest

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// spendChecks are about the effects of one spend on one balance.
func spendChecks() []check {
	return []check{
		{name: "spend/take", run: checkTake},
		{name: "spend/order", run: checkSpendOrder},
		{name: "spend/refill", run: checkRefill},
		{name: "spend/remainder is kept", run: checkRemainder},
		{name: "spend/several limits", run: checkSeveralLimits},
		{name: "spend/results are set", run: checkResultsSet},
		{name: "spend/extreme limits", run: checkExtremeLimits},
		{name: "spend/peek creates nothing", run: checkPeekCreatesNothing},
	}
}

// checkTake: a bucket of 10 gives 10, and a missing bucket is a full one.
func checkTake(t T, s limiter.Store) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerHour("rpm", 10), limiter.Spend{Take: tokens(1)})
	c.wantBalance(tokens(10), 0, op)
	for range 10 {
		c.want(true, 0, op)
	}
	c.want(false, 0, op)
	c.wantBalance(0, 0, op)
}

// spendCase is one spend on a bucket of 10 tokens and a debt of at most 5, with a balance that was
// set before.
type spendCase struct {
	name     string
	balance  int64 // before, in tokens
	spend    limiter.Spend
	admitted bool
	want     int64 // balance after, in tokens
}

func spendCases() []spendCase {
	const most = tokenbucket.MaxAmount
	return []spendCase{
		{"nothing", 3, limiter.Spend{}, true, 3},
		{"nothing, in debt", -3, limiter.Spend{}, true, -3},
		{"all", 3, limiter.Spend{Take: tokens(3)}, true, 0},
		{"too much", 3, limiter.Spend{Take: tokens(4)}, false, 3},
		{"above the capacity", 10, limiter.Spend{Take: tokens(11)}, false, 10},
		{"greatest amount", 10, limiter.Spend{Take: most}, false, 10},
		{"look", 1, limiter.Spend{Look: true}, true, 1},
		{"peek at an empty bucket", 0, limiter.Spend{Look: true}, false, 0},
		{"peek in debt", -1, limiter.Spend{Look: true}, false, -1},
		{"peek and take", 1, limiter.Spend{Look: true, Take: tokens(1)}, true, 0},
		{"charge", 3, limiter.Spend{Charge: tokens(2)}, true, 1},
		{"charge into debt", 3, limiter.Spend{Charge: tokens(7)}, true, -4},
		{"charge to the floor", 3, limiter.Spend{Charge: tokens(8)}, true, -5},
		{"charge beyond the floor", 3, limiter.Spend{Charge: tokens(9)}, true, -5},
		{"charge at the floor", -5, limiter.Spend{Charge: tokens(1)}, true, -5},
		{"charge the greatest amount", 3, limiter.Spend{Charge: most}, true, -5},
		{"refund", 3, limiter.Spend{Refund: tokens(2)}, true, 5},
		{"refund of debt", -3, limiter.Spend{Refund: tokens(2)}, true, -1},
		{"refund to the capacity", 3, limiter.Spend{Refund: tokens(8)}, true, 10},
		{"refund the greatest amount", -5, limiter.Spend{Refund: most}, true, 10},
		{"refund and charge, giving", 9, limiter.Spend{Refund: tokens(8), Charge: tokens(8)}, true, 9},
		{"refund and charge, giving above the capacity", 9, limiter.Spend{Refund: tokens(8), Charge: tokens(3)}, true, 10},
		{"refund and charge, costing", 9, limiter.Spend{Refund: tokens(8), Charge: tokens(10)}, true, 7},
		{"refund and charge, both greatest", 2, limiter.Spend{Refund: most, Charge: most}, true, 2},
		{"refund, then take", 0, limiter.Spend{Refund: tokens(2), Take: tokens(2)}, true, 0},
		{"refund, then take too much", 0, limiter.Spend{Refund: tokens(2), Take: tokens(3)}, false, 2},
		{"refund, then peek", 0, limiter.Spend{Refund: tokens(1), Look: true}, true, 1},
		{"take before a charge", 2, limiter.Spend{Take: tokens(2), Charge: tokens(2)}, true, -2},
		{"take and a charge to the floor", 2, limiter.Spend{Take: tokens(2), Charge: tokens(9)}, true, -5},
		{"denied take, charge applied", 2, limiter.Spend{Take: tokens(3), Charge: tokens(4)}, false, -2},
		{"denied peek, charge applied", 0, limiter.Spend{Look: true, Charge: tokens(4)}, false, -4},
		{"everything, giving", 5, limiter.Spend{Refund: tokens(4), Charge: tokens(1), Take: tokens(8), Look: true}, true, 0},
		{"everything, costing", 5, limiter.Spend{Refund: tokens(1), Charge: tokens(4), Take: tokens(5), Look: true}, true, -3},
	}
}

// checkSpendOrder: refund and charge are netted and a net refund is added. Then the take is
// admitted or denied, and then a net charge is taken.
func checkSpendOrder(t T, s limiter.Store) {
	c := newClient(t, s)
	l := limiter.PerDay("l", 10).WithMaxDebt(5)
	for _, tc := range spendCases() {
		op := c.one(tc.name, l, tc.spend)
		c.want(true, 0, spending(op, limiter.Spend{Charge: tokens(10 - tc.balance)}))
		ops := []limiter.Op{op}
		if got := c.take(0, ops...); got != tc.admitted {
			t.Errorf("%s: admitted = %t, want %t; %s", tc.name, got, tc.admitted, describe(ops))
		}
		if got := ops[0].Spends[0]; got.Exceeded == tc.admitted || got.Bucket.Tokens != tokens(tc.want) {
			t.Errorf("%s: exceeded = %t, balance %d; want %t, %d", tc.name, got.Exceeded, got.Bucket.Tokens, !tc.admitted, tokens(tc.want))
		}
		c.wantBalance(tokens(tc.want), 0, op)
	}
}

// checkRefill: refill adds tokens with time, up to the capacity, and never from a clock that runs
// backwards.
func checkRefill(t T, s limiter.Store) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerSecond("rps", 10), limiter.Spend{Take: tokens(10)})
	c.want(true, 0, op)
	for _, step := range []struct{ ms, want int64 }{
		{0, 0}, {1, 10}, {100, 1000}, {50, 1000}, {-1_000_000, 1000}, {101, 1010}, {999, 9990}, {1000, 10_000}, {5000, 10_000}, {1, 10_000},
	} {
		c.wantBalance(step.want, step.ms, op)
	}
	c.want(true, 5000, op)
	c.want(false, 0, op)
	c.wantBalance(0, 5000, op)
	c.wantBalance(1000, 5100, op)
}

// checkRemainder: a refill of less than a millitoken is neither lost nor granted twice, with any
// number of decisions.
func checkRemainder(t T, s limiter.Store) {
	c := newClient(t, s)
	op := c.one("user", limiter.Custom("l", 7, 1, 7*time.Hour), limiter.Spend{Take: tokens(7)})
	c.want(true, 0, op)
	const period = 7 * 3_600_000
	for ms := int64(0); ms <= period; ms += 99_991 {
		got := c.state(ms, op)
		want := tokenbucket.Bucket{Tokens: ms * 1000 / period, Remainder: ms * 1000 % period, Refilled: epoch + ms}
		if got != want {
			t.Fatalf("at %d ms: %+v, want %+v", ms, got, want)
		}
	}
	c.wantBalance(1000, period, op)
}

// checkSeveralLimits: the limits of a bucket have separate balances, decided together.
func checkSeveralLimits(t T, s limiter.Store) {
	c := newClient(t, s)
	set := c.limits(limiter.PerHour("rpm", 2), limiter.PerHour("tpm", 100), limiter.PerHour("z", 5), limiter.Unlimited("free"))
	both := on("user", set, limiter.Spend{Limit: "tpm", Take: tokens(60)}, limiter.Spend{Limit: "rpm", Take: tokens(1)},
		limiter.Spend{Limit: "free", Take: tokenbucket.MaxAmount})
	c.want(true, 0, both)
	if both.Spends[2].Held {
		t.Errorf("an unlimited limit is held")
	}
	c.want(false, 0, both)
	if both.Spends[1].Exceeded || !both.Spends[0].Exceeded {
		t.Errorf("tpm is exhausted and rpm is not, but: %s", describe([]limiter.Op{both}))
	}
	c.wantBalance(tokens(1), 0, spending(both, limiter.Spend{Limit: "rpm"}))
	c.wantBalance(tokens(40), 0, spending(both, limiter.Spend{Limit: "tpm"}))
	c.wantBalance(tokens(5), 0, spending(both, limiter.Spend{Limit: "z"}))
}

// checkResultsSet: results of an earlier decision in a spend have no effect and are overwritten.
func checkResultsSet(t T, s limiter.Store) {
	c := newClient(t, s)
	set := c.limits(limiter.PerHour("a", 5), limiter.PerHour("b", 7), limiter.Unlimited("u"))
	stale := limiter.Spend{Exceeded: true, Index: 99, Bucket: tokenbucket.Bucket{Tokens: 1, Remainder: 2, Refilled: 3}}
	spends := []limiter.Spend{stale, stale}
	spends[0].Limit, spends[0].Take = "b", tokens(2)
	spends[1].Limit, spends[1].Held = "u", true
	c.want(true, 0, on("user", set, spends...))
	if got := spends[1]; got.Held || got.Exceeded {
		t.Errorf("an unlimited limit: held = %t, exceeded = %t, want false", got.Held, got.Exceeded)
	}
	got := spends[0]
	if want := (tokenbucket.Bucket{Tokens: tokens(5), Refilled: epoch}); !got.Held || got.Exceeded || got.Bucket != want {
		t.Errorf("held = %t, exceeded = %t, %+v; want true, false, %+v", got.Held, got.Exceeded, got.Bucket, want)
	}
	if got.Limits == nil || got.Limits.Hash() != set.Hash() || got.Index != set.Find("b") {
		t.Errorf("the spend does not name the limit that the bucket is under: index %d", got.Index)
	}
}

// checkExtremeLimits: the greatest and the slowest limits are exact.
func checkExtremeLimits(t T, s limiter.Store) {
	c := newClient(t, s)
	big := c.one("big", limiter.PerSecond("l", limiter.MaxTokens).WithMaxDebt(limiter.MaxTokens), limiter.Spend{})
	c.want(true, 0, spending(big, limiter.Spend{Take: tokenbucket.MaxCapacity}))
	c.wantBalance(tokenbucket.MaxCapacity/1000, 1, big)
	c.wantBalance(tokenbucket.MaxCapacity, 1_000_000, big)
	c.want(true, 1_000_000, spending(big, limiter.Spend{Charge: tokenbucket.MaxAmount}))
	c.wantBalance(-tokenbucket.MaxCapacity, 1_000_000, big)
	c.wantBalance(tokenbucket.MaxCapacity, 1_002_000, big)

	slow := c.one("slow", limiter.Custom("l", limiter.MaxTokens, 1, 366*24*time.Hour), limiter.Spend{})
	c.want(true, 0, spending(slow, limiter.Spend{Take: tokenbucket.MaxCapacity}))
	const year = 366 * 24 * 3_600_000
	c.wantBalance(499, year/2-1, slow)
	c.wantBalance(500, year/2, slow)
	c.wantBalance(1000, year, slow)
}

// checkPeekCreatesNothing: after peeks and denials an unused bucket is as full as a bucket without
// requests.
func checkPeekCreatesNothing(t T, s limiter.Store) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 3), limiter.Spend{Look: true})
	all := spending(op, limiter.Spend{Take: tokens(3)})
	c.want(true, 1000, op)
	c.want(false, 1000, spending(op, limiter.Spend{Take: tokens(4)}))
	c.want(true, 1000, op)
	c.want(true, 1000, all)
	c.want(false, 1000, all)
}
