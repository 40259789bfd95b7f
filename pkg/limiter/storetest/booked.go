package storetest

import (
	"errors"
	"slices"
	"strconv"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// checkBooked: an adjustment returns the part of its amount that was booked, and its repetition
// returns the same.
func checkBooked(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 10).WithMaxDebt(5), limiter.Spend{Take: tokens(3)})
	c.want(true, 0, op)
	for _, step := range []struct {
		kind                limiter.AdjustKind
		amount, booked, cut int64
	}{
		{limiter.AdjustTopUp, tokens(1), tokens(1), 0},
		{limiter.AdjustTopUp, tokens(25), tokens(2), tokens(23)},
		{limiter.AdjustTakeOut, tokens(4), tokens(-4), 0},
		{limiter.AdjustTakeOut, tokens(25), tokens(-11), tokens(14)},
		{limiter.AdjustSet, tokens(6), tokens(11), 0},
		{limiter.AdjustReset, 0, tokens(4), 0},
		{limiter.AdjustTakeOut, tokens(2), tokens(-2), 0},
	} {
		a := upToCapacity(limiter.Adjustment{Bucket: op.Bucket, Kind: step.kind, Tokens: step.amount, Once: step.kind.Action() + strconv.FormatInt(step.amount, 10)})
		out := adjust(t, s, a)
		want := limiter.Booking{Limit: "l", Tokens: step.booked}
		if out.Repeated || !slices.Equal(out.Booked, []limiter.Booking{want}) || a.Cut(want) != step.cut {
			t.Errorf("%s: booked %+v of %+v; want %+v, and %d cut, not %d", a.Once, out.Booked, out, want, step.cut, a.Cut(want))
		}
		again := adjust(t, s, a)
		wantFirst(t, again, limiter.FirstAdjustment{Kind: step.kind, Tokens: step.amount, Booked: out.Booked})
	}
	other := c.one("other", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(3)})
	c.want(true, 0, other)
	again := adjust(t, s, limiter.Adjustment{Bucket: other.Bucket, Kind: limiter.AdjustTopUp, Tokens: tokens(1), Once: limiter.ActionTopUpBucket + strconv.FormatInt(tokens(25), 10)})
	wantFirst(t, again, limiter.FirstAdjustment{Kind: limiter.AdjustTopUp, Tokens: tokens(25), Elsewhere: true, Booked: []limiter.Booking{{Limit: "l", Tokens: tokens(2)}}})
	c.wantBalance(tokens(7), 0, other)
	unused := limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: "unused", Resource: "r"}
	again = adjust(t, s, limiter.Adjustment{Bucket: unused, Kind: limiter.AdjustTopUp, Tokens: tokens(1), Once: limiter.ActionTopUpBucket + strconv.FormatInt(tokens(25), 10)})
	wantFirst(t, again, limiter.FirstAdjustment{Kind: limiter.AdjustTopUp, Tokens: tokens(25), Elsewhere: true, Booked: []limiter.Booking{{Limit: "l", Tokens: tokens(2)}}})
	if again.Found {
		t.Errorf("a bucket that was never used was found: %+v", again)
	}
}

// upToCapacity has a top-up leave out its excess.
func upToCapacity(a limiter.Adjustment) limiter.Adjustment {
	if a.Kind == limiter.AdjustTopUp {
		a.Excess = limiter.ExcessCut
	}
	return a
}

// checkExcessRefused: a top-up that does not fit as a whole is not made of any limit, returns the
// amounts that fit, and its key can be used later.
func checkExcessRefused(t T, s BucketStore) {
	c := newClient(t, s)
	op := on("user", c.limits(limiter.PerDay("a", 10), limiter.PerDay("b", 10)), limiter.Spend{Limit: "a", Take: tokens(6)}, limiter.Spend{Limit: "b", Take: tokens(4)})
	c.want(true, 0, op)
	a := limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp, Tokens: tokens(5), Once: "invoice"}
	fits := []limiter.Booking{{Limit: "a", Tokens: tokens(5)}, {Limit: "b", Tokens: tokens(4)}}
	for _, dry := range []bool{true, false} {
		a.DryRun = dry
		out := adjust(t, s, a)
		if !out.Found || out.Repeated || !a.Unfit(out.Booked) || !slices.Equal(out.Booked, fits) || out.After.Limits[0].Tokens != tokens(4) {
			t.Fatalf("a top-up that does not fit, dry run %v: %+v", dry, out)
		}
	}
	c.wantBalance(tokens(4), 0, spending(op, limiter.Spend{Limit: "a"}))
	c.wantBalance(tokens(6), 0, spending(op, limiter.Spend{Limit: "b"}))
	a.Tokens = tokens(4)
	if out := adjust(t, s, a); out.Repeated || a.Unfit(out.Booked) || !slices.Equal(out.Booked, []limiter.Booking{{Limit: "a", Tokens: tokens(4)}, {Limit: "b", Tokens: tokens(4)}}) {
		t.Errorf("the same key for what fits: %+v", out)
	}
	c.wantBalance(tokens(8), 0, spending(op, limiter.Spend{Limit: "a"}))
	c.wantBalance(tokens(10), 0, spending(op, limiter.Spend{Limit: "b"}))
}

// wantFirst fails unless an adjustment was a repetition of another.
func wantFirst(t T, got limiter.Adjusted, want limiter.FirstAdjustment) {
	t.Helper()
	first := got.First
	if !got.Repeated || first == nil || first.Kind != want.Kind || first.Limit != want.Limit || first.Tokens != want.Tokens || first.Elsewhere != want.Elsewhere || !slices.Equal(first.Booked, want.Booked) {
		t.Errorf("repeated %v of %+v; want that of %+v", got.Repeated, first, want)
	}
}

// checkFull: a top-up without any room is not made, and its key can be used later. A repetition
// comes before that.
func checkFull(t T, s BucketStore) {
	c := newClient(t, s)
	op := on("user", c.limits(limiter.PerDay("a", 10), limiter.PerDay("b", 10)), limiter.Spend{Limit: "b", Take: tokens(4)})
	c.want(true, 0, op)
	a := upToCapacity(limiter.Adjustment{Bucket: op.Bucket, Limit: "a", Kind: limiter.AdjustTopUp, Tokens: tokens(3), Once: "invoice"})
	for range 2 {
		out := adjust(t, s, a)
		if !out.Found || out.Repeated || !a.Unfit(out.Booked) || out.After.Limits[0].Tokens != tokens(10) {
			t.Fatalf("a top-up of a full limit: %+v", out)
		}
	}
	if s.Capabilities().AuditLogging {
		if page, err := s.ListEvents(t.Context(), op.Bucket.Namespace, limiter.AuditOf(limiter.EntityRef("user")), limiter.Page{}); err != nil || len(page.Items) != 0 {
			t.Errorf("events of a top-up that was not made: %+v, %v", page.Items, err)
		}
	}
	c.want(true, 0, spending(op, limiter.Spend{Limit: "a", Take: tokens(2)}))
	if out := adjust(t, s, a); out.Repeated || a.Unfit(out.Booked) || out.Booked[0].Tokens != tokens(2) {
		t.Fatalf("the same when there is room: %+v", out)
	}
	wantFirst(t, adjust(t, s, a), limiter.FirstAdjustment{Kind: a.Kind, Limit: "a", Tokens: a.Tokens, Booked: []limiter.Booking{{Limit: "a", Tokens: tokens(2)}}})
	a.Limit, a.Once = "", "both"
	if out := adjust(t, s, a); a.Unfit(out.Booked) || !slices.Equal(out.Booked, []limiter.Booking{{Limit: "a"}, {Limit: "b", Tokens: tokens(3)}}) {
		t.Errorf("a top-up of both: %+v", out)
	}
	c.wantBalance(tokens(9), 0, spending(op, limiter.Spend{Limit: "b"}))
}

// checkAdjustDryRun: a dry run returns the expected outcome, and changes nothing.
func checkAdjustDryRun(t T, s BucketStore) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 10).WithMaxDebt(5), limiter.Spend{Take: tokens(4)})
	c.want(true, 0, op)
	for _, step := range []struct {
		kind         limiter.AdjustKind
		amount, want int64
	}{
		{limiter.AdjustTopUp, tokens(25), tokens(10)},
		{limiter.AdjustTakeOut, tokens(25), tokens(-5)},
		{limiter.AdjustSet, tokens(2), tokens(2)},
		{limiter.AdjustReset, 0, tokens(10)},
	} {
		a := upToCapacity(limiter.Adjustment{Bucket: op.Bucket, Kind: step.kind, Tokens: step.amount, Once: "k", DryRun: true})
		out := adjust(t, s, a)
		if !out.Found || out.Repeated || out.Before.Limits[0].Tokens != tokens(6) || out.After.Limits[0].Tokens != step.want || len(out.Booked) != 1 || out.Booked[0].Tokens != step.want-tokens(6) {
			t.Errorf("a dry run of %s: %+v, want %d", step.kind.Action(), out, step.want)
		}
	}
	c.wantBalance(tokens(6), 0, op)
	if _, err := s.AdjustBucket(t.Context(), at(0), limiter.Adjustment{Bucket: op.Bucket, Limit: "other", DryRun: true}); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("no such limit: error %v, want %q", err, limiter.ErrInvalid)
	}
	made := limiter.Adjustment{Bucket: op.Bucket, Kind: limiter.AdjustTopUp, Tokens: tokens(1), Once: "k"}
	adjust(t, s, made)
	made.DryRun = true
	wantFirst(t, adjust(t, s, made), limiter.FirstAdjustment{Kind: made.Kind, Tokens: made.Tokens, Booked: []limiter.Booking{{Limit: "l", Tokens: tokens(1)}}})
	c.wantBalance(tokens(7), 0, op)
}
