package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// callers is the number of goroutines of the concurrent checks.
const callers = 64

// takeChecks are about decisions over several buckets: all or nothing.
func takeChecks() []check {
	return []check{
		{name: "take/a denial takes nothing", run: checkDenialTakesNothing},
		{name: "take/charges and refunds of a denial", run: checkDenialCharges},
		{name: "take/many buckets", run: checkManyBuckets},
		{name: "take/amounts out of range", run: checkAmountsOutOfRange},
		{name: "take/opposite orders", run: checkOppositeOrders},
		{name: "take/rings", run: checkRings},
		{name: "take/child and parents", run: checkChildAndParents},
	}
}

// checkDenialTakesNothing: if any op and spend of a decision denies, no bucket and no limit loses a
// token.
func checkDenialTakesNothing(t T, s limiter.Store) {
	c := newClient(t, s)
	set := c.limits(limiter.PerDay("a", 10), limiter.PerDay("b", 10))
	names := []string{"child", "parent", "grandparent"}
	for deny := range 6 {
		ops := make([]limiter.Op, len(names))
		for i, name := range names {
			spends := []limiter.Spend{{Limit: "a", Take: tokens(4)}, {Limit: "b", Take: tokens(5)}}
			if deny/2 == i {
				spends[deny%2].Take = tokens(11)
			}
			ops[i] = on(name, set, spends...)
		}
		c.want(false, 0, ops...)
		for i := range ops {
			for j, sp := range ops[i].Spends {
				if want := deny == 2*i+j; sp.Exceeded != want || sp.Bucket.Tokens != tokens(10) {
					t.Fatalf("op %d spend %d: exceeded = %t, %d left; want %t, 10 tokens", i, j, sp.Exceeded, sp.Bucket.Tokens, want)
				}
				c.wantBalance(tokens(10), 0, spending(ops[i], limiter.Spend{Limit: sp.Limit}))
			}
		}
	}
}

// checkDenialCharges: charges and refunds are applied although a take of another op is denied.
func checkDenialCharges(t T, s limiter.Store) {
	c := newClient(t, s)
	l := limiter.PerDay("l", 10)
	charged := c.one("charged", l, limiter.Spend{Charge: tokens(14)})
	refunded := c.one("refunded", l, limiter.Spend{Refund: tokens(3), Take: tokens(1)})
	denied := c.one("denied", l, limiter.Spend{Take: tokens(11)})
	c.want(true, 0, spending(refunded, limiter.Spend{Take: tokens(8)}))
	for _, ops := range [][]limiter.Op{{charged, refunded, denied}, {denied, charged, refunded}} {
		c.want(false, 0, ops...)
	}
	c.wantBalance(tokens(-18), 0, charged)
	c.wantBalance(tokens(8), 0, refunded)
	c.wantBalance(tokens(10), 0, denied)
	c.want(true, 0, charged) // a charge alone denies no op, not even its own
	c.wantBalance(tokens(-32), 0, charged)
}

// checkManyBuckets: a decision over 40 buckets is all or nothing like any other.
func checkManyBuckets(t T, s limiter.Store) {
	c := newClient(t, s)
	ops := make([]limiter.Op, 40)
	for i := range ops {
		ops[i] = c.one(fmt.Sprint("user", i), limiter.PerDay("l", 2), limiter.Spend{Take: tokens(1)})
	}
	c.want(true, 0, ops...)
	c.want(true, 0, ops[17])
	c.want(false, 0, ops...)
	for i := range ops {
		want := tokens(1)
		if i == 17 {
			want = 0
		}
		c.wantBalance(want, 0, ops[i])
	}
}

// checkAmountsOutOfRange: invalid amounts do not make the store panic, and change no other bucket.
func checkAmountsOutOfRange(t T, s limiter.Store) {
	c := newClient(t, s)
	other := c.one("other", limiter.PerDay("l", 2), limiter.Spend{})
	const least, most = -1 << 63, 1<<63 - 1
	for _, sp := range []limiter.Spend{
		{Take: -1},
		{Take: least},
		{Take: most},
		{Take: tokenbucket.MaxAmount + 1},
		{Charge: least},
		{Charge: most},
		{Refund: least},
		{Refund: most},
		{Refund: most, Charge: least},
		{Refund: least, Charge: most, Take: most},
	} {
		op := c.one("victim", limiter.PerDay("l", 2), sp)
		if _, err := s.Take(t.Context(), at(0), []limiter.Op{op, other}); err != nil && !isContractError(err) {
			t.Errorf("amounts %+v: the error %v is none of the contract", sp, err)
		}
	}
	c.wantBalance(tokens(2), 0, other)
}

// checkOppositeOrders: callers that name the same buckets in opposite orders do not deadlock.
func checkOppositeOrders(t T, s limiter.Store) {
	checkCrossing(t, s, 2, func(r *rand.Rand, buckets []int) {
		if r.IntN(2) == 0 {
			slices.Reverse(buckets)
		}
	})
}

// checkRings: callers whose buckets form a ring do not deadlock either: (0,1), (1,2), … (n,0), in
// every order.
func checkRings(t T, s limiter.Store) {
	checkCrossing(t, s, 7, func(r *rand.Rand, buckets []int) {
		r.Shuffle(len(buckets), func(i, j int) { buckets[i], buckets[j] = buckets[j], buckets[i] })
	})
}

// checkCrossing takes from pairs and triples of n buckets, in the orders of shuffle, until the
// smallest is empty, and counts the rest.
func checkCrossing(t T, s limiter.Store, n int, shuffle func(*rand.Rand, []int)) {
	c := newClient(t, s)
	ctx, cancel := within(t)
	defer cancel()
	ops := make([]limiter.Op, n)
	for i := range ops {
		ops[i] = c.one(fmt.Sprint("bucket", i), limiter.PerDay("l", int64(300+40*i)), limiter.Spend{Take: tokens(1)})
	}
	taken := make([]atomic.Int64, n)
	var denied atomic.Int64
	var g errgroup.Group
	for caller := range callers {
		g.Go(func() error {
			r := seeded(1, caller)
			for round := range 30 {
				first, size := (caller+round)%n, min(n, 2+r.IntN(2))
				buckets := make([]int, size)
				for i := range buckets {
					buckets[i] = (first + i) % n
				}
				shuffle(r, buckets)
				asked := make([]limiter.Op, size)
				for i, b := range buckets {
					asked[i] = spending(ops[b], limiter.Spend{Take: tokens(1)})
				}
				admitted, err := s.Take(ctx, at(0), asked)
				if err != nil {
					return err
				}
				if !admitted {
					denied.Add(1)
					continue
				}
				for _, b := range buckets {
					taken[b].Add(1)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("a caller failed (buckets that wait for each other end like this too): %v", err)
	}
	for i := range ops {
		c.wantBalance(tokens(ops[i].Limits.At(0).Capacity-taken[i].Load()), 0, ops[i])
	}
	if denied.Load() == 0 {
		t.Errorf("no decision was denied: the case shows nothing")
	}
}

// checkChildAndParents: 64 callers of 16 children under 4 parents under one root take all tokens of
// the root, each token from all three levels.
func checkChildAndParents(t T, s limiter.Store) {
	c := newClient(t, s)
	ctx, cancel := within(t)
	defer cancel()
	const rootHas = 500
	chain := func(child int) []limiter.Op {
		return []limiter.Op{
			c.one(fmt.Sprint("child", child), limiter.PerDay("l", 60), limiter.Spend{Take: tokens(1)}),
			c.one(fmt.Sprint("parent", child%4), limiter.PerDay("l", 150), limiter.Spend{Take: tokens(1)}),
			c.one("root", limiter.PerDay("l", rootHas), limiter.Spend{Take: tokens(1)}),
		}
	}
	admitted := make([]atomic.Int64, 16)
	var g errgroup.Group
	for caller := range callers {
		ops := chain(caller % 16)
		if caller%2 == 0 {
			slices.Reverse(ops)
		}
		g.Go(func() error {
			for range 20 {
				ok, err := s.Take(ctx, at(0), ops)
				if err != nil {
					return err
				}
				if ok {
					admitted[caller%16].Add(1)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("a caller failed: %v", err)
	}
	var total int64
	parents := make([]int64, 4)
	for child := range admitted {
		n := admitted[child].Load()
		total, parents[child%4] = total+n, parents[child%4]+n
		c.wantBalance(tokens(60-n), 0, chain(child)[0])
	}
	for i, n := range parents {
		c.wantBalance(tokens(150-n), 0, chain(i)[1])
	}
	if total != rootHas {
		t.Errorf("%d admitted, want %d: all tokens of the root, as no child or parent is short", total, rootHas)
	}
	c.wantBalance(0, 0, chain(0)[2])
}
