package dynamo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// account holds what writes and leases did for requests against what callers were told
// and what the stores count as lost. It is exact: a write is known by its requests, not
// by what it left, so that neither refill nor the order of messages can hide anything.
type account struct {
	deeds   map[*request][]effect
	applied map[any]bool    // writes
	revived map[string]bool // ids of writes of which a copy was applied once more
	sums    map[string]*accountSum
}

// accountSum is of one limit, in millitokens.
type accountSum struct {
	done    int64 // taken and charged, less given
	counted int64 // by the stores, as taken or not given back
	copied  int64 // taken by copies of writes that had been applied
	least   int64 // done for what callers were told, less what the debt floor cut from charges
	most    int64
}

// effect is what a write does for a request.
type effect struct {
	request  *request
	limit    string
	given    int64
	taken    int64 // with what a charge booked
	admitted int64
	rests    string // on this id of an earlier write
	uncut    int64  // that the debt floor kept from being charged
}

func newAccount() account {
	return account{deeds: make(map[*request][]effect), applied: make(map[any]bool), revived: make(map[string]bool), sums: make(map[string]*accountSum)}
}

func (a *account) of(limit string) *accountSum {
	sum := a.sums[limit]
	if sum == nil {
		sum = new(accountSum)
		a.sums[limit] = sum
	}
	return sum
}

// effectsOf returns what the write that is planned does for requests.
func effectsOf(actors []*request) []effect {
	var all []effect
	for _, r := range actors {
		if r.state.Load() != sent {
			continue
		}
		for i := range r.spends {
			sp := &r.spends[i]
			if !sp.held {
				continue
			}
			e := effect{request: r, limit: sp.limit, given: sp.give, taken: sp.found - sp.left.Tokens}
			if e.uncut = sp.cost - e.taken; r.admitted {
				e.admitted, e.uncut = sp.take, e.uncut+sp.take
			}
			all = append(all, e)
		}
	}
	return all
}

// did takes down what a write, or a lease, did. For a request it is done once, unless an
// earlier write that only took was counted, or this is a copy of such a write. Such a copy
// puts its id back: then writes that rested on this id can be taken for not applied.
func (a *account) did(by any, effects []effect) error {
	again, rests := a.applied[by], ""
	a.applied[by] = true
	if w, ok := by.(*write); ok {
		a.revived[w.id] = a.revived[w.id] || again
		if w.base != nil {
			rests = w.base.slots[w.slot]
		}
	}
	met := make(map[*request]bool)
	for i := range effects {
		e := &effects[i]
		e.rests = rests
		sum := a.of(e.limit)
		if e.uncut > 0 && e.request.books() {
			sum.least -= e.uncut
		}
		if e.taken == 0 && e.given == 0 {
			continue
		}
		undone := slices.ContainsFunc(a.deeds[e.request], func(d effect) bool { return a.revived[d.rests] })
		if len(a.deeds[e.request]) > 0 && !met[e.request] {
			switch {
			case undone:
			case e.request.books():
				return fmt.Errorf("limit %s: %d millitokens are given and %d charged for a request that was booked before", e.limit, e.given, e.taken)
			case !again && !e.request.uncertain:
				return fmt.Errorf("limit %s: %d millitokens are taken once more, which is not counted", e.limit, e.taken)
			}
		}
		if e.admitted != e.taken && !e.request.books() {
			return fmt.Errorf("limit %s: %d millitokens are taken for %d", e.limit, e.taken, e.admitted)
		}
		met[e.request] = true
		if sum.done += e.taken - e.given; again || undone {
			sum.copied += e.taken
			sum.least -= e.given
		}
	}
	for i := range effects {
		if e := effects[i]; met[e.request] {
			a.deeds[e.request] = append(a.deeds[e.request], e)
		}
	}
	return nil
}

// expect takes down what a caller was told of one of its limits.
func (a *account) expect(limit string, n int64) {
	sum := a.of(limit)
	sum.least += n
	sum.most += n
}

// expectRequest takes down what the caller of a request was told.
func (a *account) expectRequest(r *request, admitted bool) {
	for i := range r.spends {
		sp := &r.spends[i]
		if !sp.held {
			continue
		}
		a.expect(sp.limit, sp.cost-sp.give)
		if admitted {
			a.expect(sp.limit, sp.take)
		}
	}
}

// untold takes down that a call ended without an answer. Its takes must have been given
// back, or be counted, unless its process is dead. What is uncertain may be booked.
func (a *account) untold(requests []*request, dead bool, err error) {
	for _, r := range requests {
		for _, e := range a.deeds[r] {
			sum := a.of(e.limit)
			if dead || errors.Is(err, limiter.ErrUncertain) && r.books() {
				sum.least -= e.given
				sum.most += e.taken
			}
		}
	}
}

// check requires that what was done is what callers were told, and what is counted.
func (a *account) check() error {
	for limit, sum := range a.sums {
		switch {
		case sum.done < sum.least:
			return fmt.Errorf("limit %s: %d millitokens were taken, less than the %d that callers were told: %+v", limit, sum.done, sum.least, *sum)
		case sum.done > sum.most+sum.counted+sum.copied:
			return fmt.Errorf("limit %s: %d millitokens were taken, but callers were told of %d, and %d are counted: %+v", limit, sum.done, sum.most, sum.counted+sum.copied, *sum)
		}
	}
	return nil
}

// accountLog is the log of a store, from which a simulation learns what it counts as lost.
type accountLog struct {
	slog.Handler

	account *account
}

func (h accountLog) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelWarn }

func (h accountLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "millitokens" && attr.Value.Kind() == slog.KindGroup {
			for _, limit := range attr.Value.Group() {
				h.account.of(limit.Key).counted += limit.Value.Int64()
			}
		}
		return true
	})
	return nil
}

// roomFor is what a limit may be given without going over its capacity, of what it is given.
func roomFor(x *balance, given, now int64) int64 {
	return min(given, max(0, x.params.Capacity-x.leased-tokensAt(x, now)))
}
