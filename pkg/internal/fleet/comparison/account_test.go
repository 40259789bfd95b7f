package comparison_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
	"github.com/ratelimit/ratelimit/test/kit/windows"
)

// account is a token bucket that is asked without delay, and may go into debt. It is exact
// to the nanosecond: a unit is the part of a millitoken that refills in one.
type account struct {
	params tokenbucket.Params
	unit   int64 // of a millitoken
	level  int64
	at     time.Duration
}

func newAccount(l limiter.Limit) *account {
	p := l.Params()
	a := &account{params: p, unit: p.Period * int64(time.Millisecond)}
	a.level = p.Capacity * a.unit
	return a
}

// has reports whether the bucket has an amount at a time, which never goes back.
func (a *account) has(at time.Duration, amount int64) bool {
	a.level = min(a.level+int64(at-a.at)*a.params.Amount, a.params.Capacity*a.unit)
	a.at = at
	return a.level >= amount*a.unit
}

func (a *account) take(amount int64) { a.level -= amount * a.unit }

// buckets are the limits of the buckets of a run: of each key, and of all together.
type buckets struct {
	own []limiter.Limit
	all *limiter.Limit // nil without a parent
}

func (r *run) buckets() buckets {
	if len(r.keys) == 0 {
		return buckets{own: []limiter.Limit{r.limit}}
	}
	return buckets{own: slices.Repeat([]limiter.Limit{r.own}, len(r.keys)), all: &r.limit}
}

// accounts returns, for each key, the accounts of its bucket and of the parent's.
func (b buckets) accounts() [][]*account {
	of := make([][]*account, len(b.own))
	var all []*account
	if b.all != nil {
		all = []*account{newAccount(*b.all)}
	}
	for i, l := range b.own {
		of[i] = append([]*account{newAccount(l)}, all...)
	}
	return of
}

// have reports whether all accounts have an amount.
func have(accounts []*account, at time.Duration, amount int64) bool {
	ok := true
	for _, a := range accounts {
		ok = a.has(at, amount) && ok
	}
	return ok
}

func takeFrom(accounts []*account, amount int64) {
	for _, a := range accounts {
		a.take(amount)
	}
}

// ideal returns how many millitokens of the calls token buckets admit that are asked
// without delay.
func ideal(b buckets, calls []call) int64 {
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b call) int { return int(a.from - b.from) })
	accounts, admitted := b.accounts(), int64(0)
	for _, c := range calls {
		if of := accounts[c.key]; have(of, c.from, c.amount) {
			takeFrom(of, c.amount)
			admitted += c.amount
		}
	}
	return admitted
}

// needless returns how many calls were denied though the bucket, after all admissions,
// had their tokens. Where demand is above the limit that is true of most denials: any of
// them comes while some token is there.
func needless(b buckets, calls []call) int64 {
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b call) int { return int(a.to - b.to) })
	accounts, n := b.accounts(), int64(0)
	for _, c := range calls {
		switch enough := have(accounts[c.key], c.to, c.amount); {
		case c.admitted:
			takeFrom(accounts[c.key], c.amount)
		case enough:
			n++
		}
	}
	return n
}

// over returns how many millitokens a window of any bucket has beyond the bound, whenever
// within their calls the decisions were made. Stores reckon in whole milliseconds.
func over(t *testing.T, b buckets, calls []call) int64 {
	t.Helper()
	excess := func(l limiter.Limit, counts func(*call) bool) int64 {
		var all []windows.Taking
		for i := range calls {
			if c := &calls[i]; c.admitted && counts(c) {
				all = append(all, windows.Taking{From: c.from.Microseconds(), To: (c.to + time.Microsecond - 1).Microseconds(), Amount: c.amount})
			}
		}
		found, err := windows.Check(l.Params(), all, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		return found.Tightest.Excess()
	}
	worst := int64(0)
	for i, l := range b.own {
		worst = max(worst, excess(l, func(c *call) bool { return c.key == i }))
	}
	if b.all != nil {
		worst = max(worst, excess(*b.all, func(*call) bool { return true }))
	}
	return worst
}

// The accounts of a script: of two keys with two tokens each under a parent with three.
func TestAccounts(t *testing.T) {
	all := limitOf(3, 1)
	b := buckets{own: []limiter.Limit{limitOf(2, 1), limitOf(2, 1)}, all: &all}
	at := func(ms int64, key int, admitted bool) call {
		d := time.Duration(ms) * time.Millisecond
		return call{from: d, to: d, key: key, amount: limiter.Milli, answer: answer{admitted: admitted}}
	}
	calls := []call{
		at(0, 0, true), at(0, 0, true), at(0, 0, true), // the key has two: one over
		// The parent has nothing left; then a token is there, twice; the first key is in debt.
		at(1, 1, false), at(1001, 1, false), at(1001, 1, false), at(1002, 0, false),
	}
	type sums struct{ Ideal, Needless, Over int64 }
	want := sums{Ideal: 4000, Needless: 2, Over: 999} // 1 ms is refilled in a window, and clocks have 1 ms
	got := sums{ideal(b, calls), needless(b, calls), over(t, b, calls)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
