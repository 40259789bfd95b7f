package storetest

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// useChecks are about the use that limits carry over when they change.
func useChecks() []check {
	return []check{
		{name: "change/a raised limit frees callers", run: checkRaised},
		{name: "change/to and fro", run: checkToAndFro},
		{name: "change/use after a lowered limit", run: checkUseAfterLowering},
		{name: "change/names that come and go", run: checkRenames},
		{name: "change/more names than are remembered", run: checkForgotten},
	}
}

// checkRaised: a raised capacity adds the difference, once, also in debt. A changed rate alone adds
// nothing.
func checkRaised(t T, s limiter.Store) {
	c := newClient(t, s)
	small, great := limiter.PerDay("l", 5), limiter.PerDay("l", 1000)
	op := c.one("blocked", small, limiter.Spend{Take: tokens(5)})
	c.want(true, 0, op)
	c.want(false, 0, op)
	raised := under(op, 2, c.limits(great))
	c.want(true, 0, raised)
	c.wantBalance(tokens(990), 0, raised)
	c.wantBalance(tokens(990), 0, under(op, 3, c.limits(great)))
	c.wantBalance(tokens(990), 0, under(op, 4, c.limits(limiter.PerHour("l", 1000))))
	c.wantBalance(tokens(1990), 0, under(op, 5, c.limits(limiter.PerHour("l", 2000))))

	op = c.one("in debt", small, limiter.Spend{Charge: tokens(25)})
	c.want(true, 0, op)
	c.wantBalance(tokens(-17), 0, under(op, 2, c.limits(small.WithBurst(8))))
	c.wantBalance(tokens(975), 0, under(op, 3, c.limits(great)))

	op = c.one("full", small, limiter.Spend{Charge: tokens(1)})
	c.want(true, 0, op)
	c.want(true, 0, spending(op, limiter.Spend{Refund: tokens(1)}))
	c.wantBalance(tokens(1000), 0, under(op, 2, c.limits(great)))

	op = c.one("removed", small, limiter.Spend{Take: tokens(5)})
	c.want(true, 0, op)
	c.want(true, 0, under(op, 2, c.limits(limiter.PerDay("other", 1))))
	c.wantBalance(tokens(995), 0, under(op, 3, c.limits(great)))
}

// checkToAndFro: a file that alternates between versions gives at one instant no more than its
// greatest limit. Two sets of one generation do not alternate.
func checkToAndFro(t T, s limiter.Store) {
	c := newClient(t, s)
	sets := []*limiter.Limits{
		c.limits(limiter.PerDay("l", 100)), c.limits(limiter.PerDay("l", 10)), c.limits(limiter.PerDay("l", 40)),
		c.limits(limiter.PerDay("other", 1)), c.limits(limiter.PerDay("l", 100)), c.limits(limiter.Unlimited("l")), c.limits(limiter.PerHour("l", 3)),
	}
	for _, first := range []int64{1, 50, 95, 100} {
		op := on(fmt.Sprint("user", first), sets[0], limiter.Spend{Limit: "l", Take: tokens(first)})
		c.want(true, 0, op)
		admitted := first
		for i := range 10 * len(sets) {
			asked := under(spending(op, limiter.Spend{Take: tokens(1 + int64(i)%3)}), uint64(2+i), sets[i%len(sets)]) // #nosec G115 -- above 0
			if c.take(0, asked) && asked.Spends[0].Held {
				admitted += asked.Spends[0].Take / limiter.Milli
			}
		}
		for i := range 200 { // two files of one generation, on two replicas
			asked := under(spending(op, limiter.Spend{Take: tokens(1)}), 1000, sets[i%2])
			if c.take(0, asked) && asked.Spends[0].Held {
				admitted++
			}
		}
		if admitted > 100 {
			t.Errorf("%d taken first: %d tokens were admitted at one instant, 100 may be", first, admitted)
		}
	}
}

// checkUseAfterLowering: a lowered capacity cuts the balance and keeps the use, which refill makes
// up for. The rest of the use is no balance of a raised limit.
func checkUseAfterLowering(t T, s limiter.Store) {
	c := newClient(t, s)
	great, small := limiter.PerMinute("l", 60).WithBurst(1000), limiter.PerMinute("l", 60).WithBurst(100)
	for _, tc := range []struct {
		name         string
		taken, after int64 // tokens taken before, and seconds of the lowered limit
		low, raised  int64 // balance at its end, and under the first limit again
	}{
		{"at once", 600, 0, 100, 400},
		{"full before", 0, 0, 100, 1000},
		{"made up for in part", 600, 200, 100, 600},
		{"made up for", 600, 600, 100, 1000},
		{"cut in part", 950, 20, 70, 70},
		{"then full", 950, 70, 100, 120},
	} {
		op := c.one(tc.name, great, limiter.Spend{Take: tokens(tc.taken)})
		c.want(true, 0, op)
		lowered := under(op, 2, c.limits(small))
		c.wantBalance(tokens(min(1000-tc.taken, 100)), 0, lowered)
		for at := range tc.after { // every schedule is worth the same
			c.want(true, at*1000+999, spending(lowered, limiter.Spend{}))
		}
		c.wantBalance(tokens(tc.low), tc.after*1000, lowered)
		c.wantBalance(tokens(tc.raised), tc.after*1000, under(op, 3, c.limits(great)))
	}
}

// checkRenames: any number of names that come and go leave a bucket that decides. They give no name
// more than its capacity, and all are full after their time.
func checkRenames(t T, s limiter.Store) {
	c := newClient(t, s)
	const day = 86_400_000
	for _, at := range []int{1, 4, limiter.MaxLimits} {
		op := limiter.Op{Bucket: limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: fmt.Sprint("of ", at), Resource: "r"}}
		admitted := make(map[string]int)
		for round := range 120 {
			op.Generation++
			op.Limits, op.Spends = renamed(c, round, at)
			for i := range op.Spends {
				asked := spending(op, op.Spends[i])
				for c.take(0, asked) {
					admitted[asked.Spends[0].Limit]++
					if admitted[asked.Spends[0].Limit] > 10 {
						t.Fatalf("%d limits, round %d: %s gave %d tokens of 10 at one instant", at, round, asked.Spends[0].Limit, admitted[asked.Spends[0].Limit])
					}
				}
			}
		}
		op.Generation++
		op.Limits, op.Spends = renamed(c, 3, at)
		c.take(2*day, op)
		op.Generation++
		op.Limits, op.Spends = renamed(c, 120, at)
		for i := range op.Spends {
			c.wantBalance(tokens(10), 4*day, spending(op, op.Spends[i]))
		}
	}
}

// renamed returns n limits of 10 tokens a day under the names of a round, and spends of one token
// of each. After 40 rounds the names repeat.
func renamed(c client, round, n int) (*limiter.Limits, []limiter.Spend) {
	limits, spends := make([]limiter.Limit, n), make([]limiter.Spend, n)
	for i := range limits {
		name := fmt.Sprintf("limit-%02d", (round*n+i)%(40*n)%1000)
		limits[i], spends[i] = limiter.PerDay(name, 10), limiter.Spend{Limit: name, Take: tokens(1)}
	}
	return c.limits(limits...), spends
}

// checkForgotten: a store may forget which of many names was used. Until the last of them would be
// full an unknown name is empty, also when it is raised.
func checkForgotten(t T, s limiter.Store) {
	c := newClient(t, s)
	const day = 86_400_000
	first := c.one("user", limiter.PerHour("first", 60), limiter.Spend{Take: tokens(60)})
	c.want(true, 0, first)
	for i := range uint64(40) {
		l := limiter.PerDay(fmt.Sprint("l", i), 1)
		asked := under(c.one("user", l, limiter.Spend{Take: tokens(1)}), 2+i, c.limits(l))
		c.take(1000, asked)
	}
	for i, l := range []limiter.Limit{limiter.PerHour("first", 6), limiter.PerHour("first", 60)} {
		again := under(first, 100+uint64(i), c.limits(l)) // #nosec G115 -- not below 0
		if got := c.balance(1000, again); got > 16 {
			t.Errorf("a limit of %v that had given 60 tokens a second before has %d millitokens, want 16 at most", l, got)
		}
	}
	c.wantBalance(tokens(60), 3*day, under(first, 200, c.limits(limiter.PerHour("first", 60))))
}
