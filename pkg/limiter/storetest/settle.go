package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// settleChecks are about settlements: of all that try to settle a reservation one does.
func settleChecks() []check {
	return []check{
		{name: "settle/the first wins", run: checkFirstWins},
		{name: "settle/one of many at once", run: checkOneSettles},
		{name: "settle/names", run: checkMarkNames},
		{name: "settle/refusals", run: checkMarkRefusals},
		{name: "settle/expiry", run: checkExpiry},
		{name: "settle/a clock that runs backwards", run: checkMarkOutlivesClocks},
		{name: "settle/context done", run: checkSettleContextDone},
		{name: "settle/memory of the caller", run: checkMarkMemory},
	}
}

// lifetime is how long the reservations of the checks can be settled, in ms.
const lifetime = 60_000

// markOf returns a mark in the default namespace that expires a lifetime after the epoch.
func markOf(id, owner string) limiter.Mark {
	return limiter.Mark{Namespace: limiter.DefaultNamespace, ID: id, Owner: owner, Expires: at(lifetime)}
}

// settle settles at ms milliseconds after the epoch, and requires the answer.
func (c client) settle(won bool, ms int64, m limiter.Mark) {
	c.Helper()
	got, err := c.store.Settle(c.Context(), at(ms), m)
	if err != nil {
		c.Fatalf("Settle of %q in %q at %d ms: %v", cut(m.ID), cut(m.Namespace), ms, err)
	}
	if got != won {
		c.Errorf("Settle of %q in %q by %q at %d ms, to expire at %d ms: won = %t, want %t",
			cut(m.ID), cut(m.Namespace), cut(m.Owner), ms, m.Expires.UnixMilli()-epoch, got, won)
	}
}

// checkFirstWins: the first owner wins, also when it repeats the call; others do not, after any
// other calls.
func checkFirstWins(t T, s limiter.Store) {
	c := newClient(t, s)
	for _, step := range []struct {
		id, owner string
		ms        int64
		won       bool
	}{
		{"r1", "a", 0, true},
		{"r1", "b", 0, false},
		{"r1", "a", 0, true},
		{"r2", "b", 1, true},
		{"r1", "b", 2, false},
		{"r2", "a", 3, false},
		{"r1", "aa", 4, false},
		{"r1", "A", 4, false},
		{"r1", "a", lifetime - 1, true},
		{"r2", "b", lifetime - 1, true},
		{"r2", "c", lifetime - 1, false},
	} {
		c.settle(step.won, step.ms, markOf(step.id, step.owner))
	}
}

// checkOneSettles: of 8 owners that settle one reservation at the same time one
// wins, and it still does afterwards, for each of 200 reservations.
func checkOneSettles(t T, s limiter.Store) {
	const reservations, owners = 200, 8
	c := newClient(t, s)
	ctx, cancel := within(t)
	defer cancel()
	for i := range reservations {
		id := fmt.Sprint("r", i)
		var won atomic.Int64
		var winner atomic.Value
		var g errgroup.Group
		for o := range owners {
			m := markOf(id, fmt.Sprint("owner", o))
			g.Go(func() error {
				ok, err := s.Settle(ctx, at(int64(i)), m)
				if ok {
					won.Add(1)
					winner.Store(m)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil || won.Load() != 1 {
			t.Fatalf("%s: %d of %d owners won, error %v; want 1", id, won.Load(), owners, err)
		}
		c.settle(true, int64(i), winner.Load().(limiter.Mark))
	}
}

// checkMarkNames: no two reservations share a mark, and no two owners are the same.
func checkMarkNames(t T, s limiter.Store) {
	c := newClient(t, s)
	marked := make(map[markKey]limiter.Mark)
	try := func(namespace, id string) {
		key := markKey{namespace, id}
		if _, done := marked[key]; done || limiter.CheckMark(markOf(id, "o")) != nil {
			return
		}
		m := markOf(id, fmt.Sprint("owner", len(marked)))
		m.Namespace = namespace
		c.settle(true, 0, m)
		marked[key] = m
	}
	for _, name := range hostileNames() {
		try(limiter.DefaultNamespace, name)
	}
	for _, namespace := range []string{"", "ns", "NS", "ns/", "n", "ns\xff", "ns\x00", "ns#r", "\x01r", "r"} {
		for _, id := range []string{"r", "s/r", "sr", "#r", "r#MARK", "\xff", "rns", "R"} {
			try(namespace, id)
		}
	}
	for _, m := range marked {
		c.settle(true, 0, m)
		m.Owner = "other"
		c.settle(false, 0, m)
	}
	const shared = "of many owners"
	for i, owner := range hostileNames() {
		if m := markOf(shared, owner); limiter.CheckMark(m) == nil {
			c.settle(i == 0, 0, m)
		}
	}
}

// checkMarkRefusals: an ID and an owner are any 1 to MaxMarkLength bytes.
func checkMarkRefusals(t T, s limiter.Store) {
	c := newClient(t, s)
	longest := strings.Repeat("\xff", limiter.MaxMarkLength)
	for _, m := range []limiter.Mark{markOf("", "a"), markOf("r", ""), markOf(longest+"r", "a"), markOf("r", longest+"a"), markOf(longest+"\x00", "a")} {
		if won, err := s.Settle(t.Context(), at(0), m); won || !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("Settle of an ID of %d bytes by an owner of %d: got %t, %v; want %q", len(m.ID), len(m.Owner), won, err, limiter.ErrInvalid)
		}
	}
	c.settle(true, 0, markOf(longest, longest))
	c.settle(false, 0, markOf(longest, longest[1:]))
	c.settle(true, 0, markOf(longest[1:], longest))
	c.settle(true, 0, markOf("r", "b")) // the refused mark was not stored
}

// checkExpiry: no owner wins at the expiry or after it, and an expiry in the far future is not too
// soon.
func checkExpiry(t T, s limiter.Store) {
	c := newClient(t, s)
	const year = 365 * 24 * 3_600_000
	for i, step := range []struct {
		expires time.Time
		won     bool
	}{
		{time.Time{}, false},
		{at(-100_000 * year), false},
		{at(-1), false},
		{at(0), false},
		{at(1), true},
		{at(100_000 * year), true},
	} {
		m := markOf(fmt.Sprint("r", i), "a")
		m.Expires = step.expires
		c.settle(step.won, 0, m)
		c.settle(step.won, 0, m)
		m.Owner = "b"
		c.settle(false, 0, m)
	}
	c.settle(true, lifetime-1, markOf("late", "a"))
	c.settle(false, lifetime, markOf("late", "b"))
	c.settle(false, lifetime, markOf("too late", "b"))
}

// checkMarkOutlivesClocks: a clock that is set back, or another one that is late, does not allow a
// second settlement, also after an expiry in between.
func checkMarkOutlivesClocks(t T, s limiter.Store) {
	const hour = 3_600_000
	c := newClient(t, s)
	c.settle(true, 0, markOf("r", "a"))
	for _, ms := range []int64{-hour, lifetime - 1, lifetime, -1, hour, 0, lifetime + hour, lifetime - hour, 2 * hour, 1 - 2*hour} {
		m := markOf(fmt.Sprint("at ", ms), "a") // advances the store to that time
		m.Expires = at(3 * hour)
		c.settle(true, ms, m)
		c.settle(false, ms, markOf("r", "b"))
	}
}

// checkSettleContextDone: a call whose context is done leaves no mark.
func checkSettleContextDone(t T, s limiter.Store) {
	c := newClient(t, s)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if won, err := s.Settle(done, at(0), markOf("r", "a")); won || !errors.Is(err, limiter.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("Settle with a context that is done: got %t, %v; want %q and %q", won, err, limiter.ErrUnavailable, context.Canceled)
	}
	c.settle(true, 0, markOf("r", "b"))
}

// checkMarkMemory: later changes of the caller's memory change no mark.
func checkMarkMemory(t T, s limiter.Store) {
	c := newClient(t, s)
	message := []byte("namespace|reservation|owner-1")
	alias := func(from, to int) string { return unsafe.String(&message[from], to-from) } // #nosec G103 -- as callers do
	m := limiter.Mark{Namespace: alias(0, 9), ID: alias(10, 21), Owner: alias(22, 29), Expires: at(lifetime)}
	c.settle(true, 0, m)
	for i := range message {
		message[i] = 'x'
	}
	m = limiter.Mark{Namespace: "namespace", ID: "reservation", Owner: "owner-2", Expires: at(lifetime)}
	c.settle(false, 0, m)
	m.Owner = "owner-1"
	c.settle(true, 0, m)
}
