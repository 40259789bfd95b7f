package storetest

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// changeChecks are about limits that change under a live bucket.
func changeChecks() []check {
	return []check{
		{name: "change/numbers", run: checkChangedNumbers},
		{name: "change/refill before the change", run: checkRefillBeforeChange},
		{name: "change/added and removed", run: checkAddedAndRemoved},
		{name: "change/removed and added again", run: checkReadded},
		{name: "change/unlimited and back", run: checkUnlimitedAndBack},
		{name: "change/flapping", run: checkFlapping},
		{name: "change/older after newer", run: checkOlderAfterNewer},
		{name: "change/versions of one generation", run: checkSameGeneration},
		{name: "change/older than the same limits seen again", run: checkSeenAgain},
		{name: "change/debt floor", run: checkChangedDebtFloor},
		{name: "change/while callers take", run: checkChangesWhileTaking},
	}
}

// under returns the op with other limits, of a generation.
func under(op limiter.Op, generation uint64, limits *limiter.Limits) limiter.Op {
	op.Limits, op.Generation = limits, generation
	return spending(op, append([]limiter.Spend(nil), op.Spends...)...)
}

// checkChangedNumbers: a lowered capacity cuts at once, and a raised one adds the difference. From
// then on the bucket refills at its new rate up to its new capacity.
func checkChangedNumbers(t T, s limiter.Store) {
	c := newClient(t, s)
	for _, tc := range []struct {
		name      string
		to        limiter.Limit
		now, soon int64 // balance in millitokens at the change and 10 s later
		end       int64 // and a day later
	}{
		{"lowered", limiter.PerMinute("l", 30), tokens(30), tokens(30), tokens(30)},
		{"lowered, above the balance", limiter.PerMinute("l", 60), tokens(40), tokens(50), tokens(60)},
		{"raised", limiter.PerMinute("l", 600), tokens(540), tokens(600), tokens(600)},
		{"raised, slower", limiter.PerHour("l", 300).WithBurst(150), tokens(90), tokens(90) + 833, tokens(150)},
		{"slower", limiter.PerHour("l", 100), tokens(40), tokens(40) + 277, tokens(100)},
		{"burst", limiter.PerHour("l", 100).WithBurst(5), tokens(5), tokens(5), tokens(5)},
	} {
		op := c.one(tc.name, limiter.PerHour("l", 100), limiter.Spend{Take: tokens(60)})
		c.want(true, 0, op)
		changed := under(op, 2, c.limits(tc.to))
		c.wantBalance(tc.now, 0, changed)
		c.wantBalance(tc.soon, 10_000, changed)
		c.wantBalance(tc.end, 86_400_000, changed)
	}
}

// checkRefillBeforeChange: time before the change of a limit is refilled at the old rate, and once.
func checkRefillBeforeChange(t T, s limiter.Store) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerMinute("l", 100), limiter.Spend{Take: tokens(100)})
	c.want(true, 0, op)
	changed := under(op, 2, c.limits(limiter.PerDay("l", 100)))
	got := c.state(6001, changed)
	if got.Tokens != 10_001 || got.Remainder != 0 { // 10,001.66… under the old rate
		t.Errorf("after 6001 ms at 100 a minute: %+v, want 10001 millitokens and no remainder", got)
	}
	c.wantBalance(10_001, 0, changed) // a clock that is behind changes nothing
	c.wantBalance(10_002, 6001+864, changed)
}

// checkAddedAndRemoved: an added limit starts full. A spend of a removed one is not held, and
// passes.
func checkAddedAndRemoved(t T, s limiter.Store) {
	c := newClient(t, s)
	a, b := limiter.PerDay("a", 10), limiter.PerDay("b", 20)
	onlyA, both := c.limits(a), c.limits(a, b)
	op := on("user", onlyA, limiter.Spend{Limit: "a", Take: tokens(4)})
	c.want(true, 0, op)
	added := spending(under(op, 2, both), limiter.Spend{Limit: "a", Take: tokens(1)}, limiter.Spend{Limit: "b", Take: tokens(5)})
	c.want(true, 0, added)
	c.wantBalance(tokens(5), 0, spending(added, limiter.Spend{Limit: "a"}))
	c.wantBalance(tokens(15), 0, spending(added, limiter.Spend{Limit: "b"}))

	c.want(true, 0, under(op, 3, c.limits(a.WithBurst(9)))) // a has 5 of 9: takes 4
	late := spending(added, limiter.Spend{Limit: "a", Take: tokens(1)}, limiter.Spend{Limit: "b", Take: tokens(21)})
	c.want(true, 0, late)
	if !late.Spends[0].Held || late.Spends[0].Bucket.Tokens != 0 || late.Spends[1].Held || late.Spends[1].Exceeded {
		t.Errorf("a is held and empty, b is not held; got %s", describe([]limiter.Op{late}))
	}
	late.Spends[0].Take = tokens(1)
	c.want(false, 0, late)
}

// checkReadded: removing a limit and adding it again gives no tokens. With greater parameters it is
// a limit that was raised. After the time in which it would have been full it is new.
func checkReadded(t T, s limiter.Store) {
	c := newClient(t, s)
	a, b := limiter.PerDay("a", 10), limiter.PerMinute("b", 60)
	without, with, greater := c.limits(a), c.limits(a, b), c.limits(a, limiter.PerMinute("b", 600))
	op := on("user", with, limiter.Spend{Limit: "a", Take: tokens(9)}, limiter.Spend{Limit: "b", Take: tokens(60)})
	c.want(true, 0, op)
	askA, askB := spending(op, limiter.Spend{Limit: "a"}), spending(op, limiter.Spend{Limit: "b"})
	c.want(true, 0, under(askA, 2, without))
	c.wantBalance(0, 0, under(askB, 3, with))
	c.want(true, 1000, under(askA, 4, without))
	c.wantBalance(tokens(2), 2000, under(askB, 5, with)) // 2 s at the old rate
	c.wantBalance(tokens(542), 2000, under(askB, 6, greater))
	c.wantBalance(tokens(552), 3000, under(askB, 6, greater))
	c.want(true, 3000, under(askA, 7, without))
	c.want(true, 4000, under(askA, 8, c.limits(a, limiter.PerHour("z", 1))))
	c.wantBalance(tokens(60), 6000, under(askB, 9, with)) // 3 s at 10 a second, dormant twice: 18 are used
	c.want(true, 6000, under(askA, 10, without))
	c.wantBalance(tokens(599), 6000+17_000, under(askB, 11, greater))
	c.want(true, 6000+17_000, under(askA, 12, without))
	c.wantBalance(tokens(600), 6000+18_000, under(askB, 13, greater)) // full by then, so it starts over
}

// checkUnlimitedAndBack: a limit that is unlimited for a while is not full afterwards.
func checkUnlimitedAndBack(t T, s limiter.Store) {
	c := newClient(t, s)
	limited := c.limits(limiter.PerHour("l", 60))
	free := c.limits(limiter.Unlimited("l"))
	op := on("user", limited, limiter.Spend{Limit: "l", Take: tokens(60)})
	c.want(true, 0, op)
	exempt := under(op, 2, free)
	c.want(true, 0, exempt)
	if exempt.Spends[0].Held {
		t.Errorf("an unlimited limit is held")
	}
	late := under(op, 1, limited)
	c.want(true, 0, late)
	if late.Spends[0].Held {
		t.Errorf("a caller with the older limits: the limit is held, but unlimited by now")
	}
	c.wantBalance(tokens(1), 60_000, under(op, 3, limited))
}

// checkFlapping: limits that change back and forth a hundred times, at one instant, give no more
// than the capacity.
func checkFlapping(t T, s limiter.Store) {
	c := newClient(t, s)
	a, b := limiter.PerDay("a", 1000), limiter.PerDay("b", 10)
	sets := []*limiter.Limits{c.limits(a, b), c.limits(a), c.limits(a, b.WithBurst(7)), c.limits(a, limiter.Unlimited("b"))}
	op := on("user", sets[0], limiter.Spend{Limit: "a", Take: tokens(1)}, limiter.Spend{Limit: "b", Take: tokens(1)})
	var admitted int
	for i := range 100 {
		asked := under(op, uint64(i+1), sets[i%len(sets)])
		if c.take(0, asked) && asked.Spends[1].Held {
			admitted++
		}
	}
	if admitted != 10 {
		t.Errorf("%d of limit b were admitted at one instant, want 10", admitted)
	}
}

// checkOlderAfterNewer: a suspended caller with older limits is decided by the newer ones.
func checkOlderAfterNewer(t T, s limiter.Store) {
	c := newClient(t, s)
	generous, strict := c.limits(limiter.PerDay("l", 100)), c.limits(limiter.PerDay("l", 10))
	op := on("user", generous, limiter.Spend{Limit: "l", Take: tokens(1)})
	newer := under(op, 8, strict)
	c.want(true, 0, newer)
	for i := range 9 {
		older := under(op, 7-uint64(i)%3, generous)
		c.want(true, 0, older)
		sp := older.Spends[0]
		if sp.Limits == nil || sp.Limits.Hash() != strict.Hash() || sp.Bucket.Tokens != tokens(int64(8-i)) {
			t.Fatalf("decided under the older limits: %s", describe([]limiter.Op{older}))
		}
	}
	c.want(false, 0, under(op, 7, generous))
	c.want(false, 0, newer)
	c.wantBalance(tokens(90), 0, under(op, 9, generous))
}

// checkSameGeneration: of two versions of one generation the one with the greater hash is the
// newer, so that callers with different versions do not alternate.
func checkSameGeneration(t T, s limiter.Store) {
	c := newClient(t, s)
	a, b := c.limits(limiter.PerDay("l", 10)), c.limits(limiter.PerDay("l", 20))
	if a.Hash() > b.Hash() {
		a, b = b, a
	}
	for _, first := range []*limiter.Limits{a, b} {
		op := on("user", first, limiter.Spend{Limit: "l", Take: tokens(1)})
		op.Bucket.Variant = first.Hash() // a bucket for each order
		c.want(true, 0, op)
		c.want(true, 0, under(op, 1, b))
		late := under(op, 1, a)
		c.want(true, 0, late)
		if sp := late.Spends[0]; sp.Limits == nil || sp.Limits.Hash() != b.Hash() {
			t.Errorf("decided under the smaller hash: %s", describe([]limiter.Op{late}))
		}
	}
}

// checkSeenAgain: limits that returned are as new as their last appearance. So a suspended caller
// with those in between does not restore them.
func checkSeenAgain(t T, s limiter.Store) {
	c := newClient(t, s)
	first, between := c.limits(limiter.PerDay("l", 100)), c.limits(limiter.PerDay("l", 10))
	op := on("user", first, limiter.Spend{Limit: "l", Take: tokens(1)})
	c.want(true, 0, op)
	c.want(true, 0, under(op, 5, first))
	late := under(op, 3, between)
	c.want(true, 0, late)
	if sp := late.Spends[0]; sp.Limits == nil || sp.Limits.Hash() != first.Hash() {
		t.Errorf("decided under the limits in between: %s", describe([]limiter.Op{late}))
	}
	c.wantBalance(tokens(97), 0, under(op, 5, first))
}

// checkChangedDebtFloor: the debt floor of the limits in force counts. A balance that is already
// below it stays, and refills like any other.
func checkChangedDebtFloor(t T, s limiter.Store) {
	c := newClient(t, s)
	l := limiter.PerHour("l", 60)
	op := c.one("user", l.WithMaxDebt(100), limiter.Spend{Charge: tokens(130)})
	c.want(true, 0, op)
	changed := under(op, 2, c.limits(l.WithMaxDebt(limiter.NoDebt)))
	c.want(true, 0, changed)
	c.wantBalance(tokens(-70), 0, changed)
	c.want(true, 60_000, changed)
	c.wantBalance(tokens(-69), 60_000, changed)
	c.want(true, 7_200_000, changed)
	c.wantBalance(0, 7_200_000, changed)
}
