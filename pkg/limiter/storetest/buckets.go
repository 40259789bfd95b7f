package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// BucketStore is a store whose balances operators can read and change.
type BucketStore interface {
	ControlStore
	limiter.Buckets
}

// RunBuckets tests the stores that open returns against the contract of limiter.Buckets. Each case
// has a fresh store, which is closed after it.
func RunBuckets(t *testing.T, open func(t *testing.T) BucketStore) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t T, s BucketStore)
	}{
		{"buckets/listed", checkBucketsListed},
		{"buckets/adjusted", checkAdjusted},
		{"buckets/reset gives the capacity and no more", checkReset},
		{"buckets/one limit of several", checkAdjustOneLimit},
		{"buckets/set under limits that the bucket has yet to get", checkSetAhead},
		{"buckets/the balance under limits that the bucket has yet to get", checkBalanceAhead},
		{"buckets/once", checkAdjustOnce},
		{"buckets/a top-up returns its bookings", checkBooked},
		{"buckets/a full limit is not topped up", checkFull},
		{"buckets/a top-up with an excess is refused", checkExcessRefused},
		{"buckets/an extra above the capacity", checkExtra},
		{"buckets/an extra, adjusted", checkExtraAdjusted},
		{"buckets/an extra under other limits", checkExtraUnderChange},
		{"buckets/an extra, rolled back", checkExtraRolledBack},
		{"buckets/dry run", checkAdjustDryRun},
		{"buckets/settled after a reset", checkSettledAfterReset},
		{"buckets/refused", checkAdjustRefused},
		{"buckets/audited", checkAdjustAudited},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			defer closeStore(t, s)
			c.run(t, s)
		})
	}
}

// adjust makes an adjustment at the epoch.
func adjust(t T, s BucketStore, a limiter.Adjustment) limiter.Adjusted {
	t.Helper()
	out, err := s.AdjustBucket(t.Context(), at(0), a)
	if err != nil {
		t.Fatalf("AdjustBucket %+v: %v", a, err)
	}
	return out
}

// checkBucketsListed: each bucket in use is on one page, with the balances that a peek finds.
func checkBucketsListed(t T, s BucketStore) {
	c := newClient(t, s)
	want := map[string][]string{} // by filter
	for i := range 30 {
		op := c.one(fmt.Sprintf("e%d\xff", i%10), limiter.PerDay("l", 10), limiter.Spend{Take: tokens(int64(i%10 + 1))})
		op.Bucket.Resource, op.Bucket.Variant = fmt.Sprint("r", i/10%2), uint64(i/20)
		c.want(true, 0, op)
		text := fmt.Sprintf("%+v %d", op.Bucket, tokens(int64(10-i%10-1)))
		for _, filter := range []string{"|", op.Bucket.Entity + "|", "|" + op.Bucket.Resource, op.Bucket.Entity + "|" + op.Bucket.Resource} {
			want[filter] = append(want[filter], text)
		}
	}
	elsewhere := c.one("e1\xff", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)})
	elsewhere.Bucket.Namespace = "other"
	c.want(true, 0, elsewhere)
	for filter, want := range want {
		var f limiter.BucketFilter
		for i := range filter {
			if filter[i] == '|' {
				f.Entity, f.Resource = filter[:i], filter[i+1:]
			}
		}
		for _, size := range []int{1, 7, 1000} {
			got := make([]string, 0, len(want))
			for _, b := range all(t, size, func(p limiter.Page) (limiter.PageOf[limiter.BucketState], error) {
				return s.ListBuckets(t.Context(), at(0), limiter.DefaultNamespace, f, p)
			}) {
				got = append(got, fmt.Sprintf("%+v %d", b.Key, b.Limits[0].Tokens))
			}
			wantSame(t, fmt.Sprintf("%q, pages of %d", filter, size), want, got)
		}
	}
	if _, err := s.ListBuckets(t.Context(), at(0), "ns", limiter.BucketFilter{}, limiter.Page{After: "AAAA"}); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("a cursor that is none: error %v, want %q", err, limiter.ErrInvalid)
	}
}

// checkAdjusted: each kind leads to its balance, in consecutive steps, and the next decision uses
// that balance.
func checkAdjusted(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 10).WithMaxDebt(5), limiter.Spend{Take: tokens(4)})
	c.want(true, 0, op)
	balance := tokens(6)
	for _, step := range []struct {
		kind         limiter.AdjustKind
		amount, want int64
	}{
		{limiter.AdjustTakeOut, tokens(2), tokens(4)},
		{limiter.AdjustTopUp, tokens(3), tokens(7)},
		{limiter.AdjustTopUp, 500, 7500},
		{limiter.AdjustTopUp, tokens(100), tokens(10)},
		{limiter.AdjustSet, 0, 0},
		{limiter.AdjustSet, tokens(3), tokens(3)},
		{limiter.AdjustTakeOut, tokens(100), tokens(-5)},
		{limiter.AdjustTopUp, tokens(1), tokens(-4)},
		{limiter.AdjustSet, tokens(10), tokens(10)},
		{limiter.AdjustTakeOut, tokens(10), 0},
		{limiter.AdjustReset, 0, tokens(10)},
		{limiter.AdjustReset, 0, tokens(10)},
	} {
		out := adjust(t, s, upToCapacity(limiter.Adjustment{Bucket: op.Bucket, Kind: step.kind, Tokens: step.amount}))
		if !out.Found || out.Repeated || out.Before.Limits[0].Tokens != balance || out.After.Limits[0].Tokens != step.want {
			t.Fatalf("%s of %d at %d: %+v, want %d", step.kind.Action(), step.amount, balance, out, step.want)
		}
		c.wantBalance(step.want, 0, op)
		balance = step.want
	}
	nobody := limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: "nobody", Resource: "r"}
	if out := adjust(t, s, limiter.Adjustment{Bucket: nobody}); out.Found {
		t.Errorf("an unused bucket: %+v", out)
	}
}

// checkReset: after a reset the capacity is admitted, and not a token more.
func checkReset(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)})
	for range 10 {
		c.want(true, 0, op)
	}
	c.want(false, 0, op)
	adjust(t, s, limiter.Adjustment{Bucket: op.Bucket})
	for range 10 {
		c.want(true, 0, op)
	}
	c.want(false, 0, op)
}

// checkAdjustOneLimit: the other limits of a bucket are unchanged.
func checkAdjustOneLimit(t T, s BucketStore) {
	c := newClient(t, s)
	limits := c.limits(limiter.PerDay("a", 10), limiter.PerDay("b", 10), limiter.Unlimited("c"))
	op := on("user", limits, limiter.Spend{Limit: "a", Take: tokens(4)}, limiter.Spend{Limit: "b", Take: tokens(5)}, limiter.Spend{Limit: "c", Take: tokens(6)})
	c.want(true, 0, op)
	for _, step := range []struct {
		limit string
		a, b  int64
	}{{"a", 10, 5}, {"b", 10, 10}} {
		out := adjust(t, s, limiter.Adjustment{Bucket: op.Bucket, Limit: step.limit})
		if got := out.After.Limits; len(got) != 3 || got[0].Tokens != tokens(step.a) || got[1].Tokens != tokens(step.b) || !got[2].Limit.Unlimited {
			t.Errorf("reset of %s: %+v", step.limit, out)
		}
	}
	adjust(t, s, limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustSet, Tokens: tokens(2)})
	c.wantBalance(tokens(2), 0, spending(op, limiter.Spend{Limit: "a"}))
	c.wantBalance(tokens(2), 0, spending(op, limiter.Spend{Limit: "b"}))
}

// checkSetAhead: a limit is set by the number in force, which the bucket gets with its next request.
func checkSetAhead(t T, s BucketStore) {
	for name, limit := range map[string]func(n int64) limiter.Limit{
		"refills": func(n int64) limiter.Limit { return limiter.PerDay("l", n) },
		"never":   func(n int64) limiter.Limit { return limiter.Custom("l", n, 0, time.Second) }, // its use counts in full
	} {
		c := newClient(t, s)
		of := func(n int64) *limiter.Limits { return c.limits(limit(n)) }
		op := on(name, of(1000), limiter.Spend{Limit: "l", Take: tokens(600)})
		c.want(true, 0, op)
		for i, n := range []int64{100, 1000, 70} {
			a := limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustSet, Tokens: tokens(n) + 1, Limits: of(n)}
			if _, err := s.AdjustBucket(t.Context(), at(0), a); !errors.Is(err, limiter.ErrInvalid) {
				t.Errorf("%s: more than %d: error %v, want %q", name, n, err, limiter.ErrInvalid)
			}
			a.Tokens = tokens(50)
			adjust(t, s, a)
			c.wantBalance(tokens(50), 0, under(op, uint64(i+2), of(n))) // #nosec G115 -- few
		}
	}
}

// checkBalanceAhead: LimitState.Under is the balance that the next request finds under other limits.
func checkBalanceAhead(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(800)})
	c.want(true, 0, op)
	for i, step := range []struct{ capacity, want int64 }{{1200, 400}, {100, 100}, {50, 50}, {900, 100}, {1000, 200}} {
		to := limiter.PerDay("l", step.capacity)
		state := adjust(t, s, limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp, DryRun: true}).Before.Limits[0]
		state.Under(to, at(0))
		if state.Tokens != tokens(step.want) || state.Limit != to {
			t.Errorf("under a capacity of %d: %+v, want %d", step.capacity, state, step.want)
		}
		op = under(op, uint64(i+2), c.limits(to)) // #nosec G115 -- few
		c.wantBalance(tokens(step.want), 0, op)
	}
}

// checkAdjustOnce: of adjustments with the same key, also concurrent ones, one is made, and the
// others are reported as repetitions.
func checkAdjustOnce(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 100), limiter.Spend{Take: tokens(100)})
	c.want(true, 0, op)
	a := limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp, Tokens: tokens(7), Once: "invoice 1 \xff"}
	ctx, cancel := within(t)
	defer cancel()
	var made atomic.Int64
	var g errgroup.Group
	for range callers {
		g.Go(func() error {
			out, err := s.AdjustBucket(ctx, at(0), a)
			if err == nil && !out.Repeated {
				made.Add(1)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil || made.Load() != 1 {
		t.Errorf("%d were made, error %v; want 1", made.Load(), err)
	}
	c.wantBalance(tokens(7), 0, op)
	a.Once = "invoice 2"
	adjust(t, s, a)
	c.wantBalance(tokens(14), 0, op)
}

// checkSettledAfterReset: a reservation from before a reset is settled as usual after it. A refund
// has no room, and use beyond the reserved amount is charged.
func checkSettledAfterReset(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(6)})
	c.want(true, 0, op)
	adjust(t, s, limiter.Adjustment{Bucket: op.Bucket})
	c.want(true, 0, spending(op, limiter.Spend{Limit: "l", Refund: tokens(2)}))
	c.wantBalance(tokens(10), 0, op)
	c.want(true, 0, spending(op, limiter.Spend{Limit: "l", Charge: tokens(3)}))
	c.wantBalance(tokens(7), 0, op)
	adjust(t, s, limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustSet, Tokens: tokens(1)})
	c.want(true, 0, spending(op, limiter.Spend{Limit: "l", Refund: tokens(2)}))
	c.wantBalance(tokens(3), 0, op)
}

// checkAdjustRefused: an invalid adjustment changes nothing.
func checkAdjustRefused(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(4)})
	c.want(true, 0, op)
	for name, a := range map[string]limiter.Adjustment{
		"no such limit":          {Limit: "other"},
		"no such kind":           {Kind: limiter.AdjustTakeOut + 1},
		"no such excess":         {Kind: limiter.AdjustTopUp, Excess: 99},
		"an excess of a set":     {Kind: limiter.AdjustSet, Excess: limiter.ExcessCut},
		"an amount below 0":      {Kind: limiter.AdjustTopUp, Tokens: -1},
		"a reset with an amount": {Tokens: 1},
		"above the capacity":     {Kind: limiter.AdjustSet, Tokens: tokens(10) + 1},
		"a long key":             {Once: string(make([]byte, limiter.MaxOnce+1))},
	} {
		a.Bucket = op.Bucket
		if _, err := s.AdjustBucket(t.Context(), at(0), a); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: error %v, want %q", name, err, limiter.ErrInvalid)
		}
	}
	c.wantBalance(tokens(6), 0, op)
}

// checkAdjustAudited: each adjustment that was made leaves an event, under its entity, unless it follows another one.
func checkAdjustAudited(t T, s BucketStore) {
	if !s.Capabilities().AuditLogging {
		return // RunControl tests the rest of the contract of such a store
	}
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(4)})
	c.want(true, 0, op)
	ctx := limiter.WithReason(limiter.WithPrincipal(t.Context(), "alice"), "paid")
	for range 2 {
		a := limiter.Adjustment{Bucket: op.Bucket, Limit: "l", Kind: limiter.AdjustTopUp, Tokens: 1500, Once: "k"}
		if _, err := s.AdjustBucket(ctx, at(0), a); err != nil {
			t.Fatal(err)
		}
	}
	adjust(t, s, limiter.Adjustment{Bucket: limiter.BucketKey{Namespace: op.Bucket.Namespace, Entity: "user", Resource: "unused"}})
	adjust(t, s, limiter.Adjustment{Bucket: op.Bucket, Limit: "l", Kind: limiter.AdjustTakeOut, Tokens: 500, Follows: true})
	page, err := s.ListEvents(t.Context(), op.Bucket.Namespace, limiter.AuditOf(limiter.EntityRef("user")), limiter.Page{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%d events, %v; want 1", len(page.Items), err)
	}
	if e := page.Items[0]; e.Action != limiter.ActionTopUpBucket || e.Principal != "alice" || e.Reason != "paid" || e.Subject != limiter.EntityLimitsRef("user", "r") || !strings.HasPrefix(e.Detail, "limit l, 1.5 tokens") {
		t.Errorf("the event is %+v", e)
	}
}
