package plan_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestVerdicts: the need of each kind of request, on a bucket of ten tokens that is empty at
// its epoch and has one more each 100 ms.
func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		at      int64
		options plan.Options
		before  []limiter.Spend // applied to the same stage
		spend   limiter.Spend
		want    plan.Verdict
	}{
		{name: "a take that is there", at: 500, spend: limiter.Spend{Take: 5000}, want: plan.Commutes},
		{name: "a take that is not", at: 500, spend: limiter.Spend{Take: 5001}, want: plan.Denied},
		{name: "a take behind another", at: 500, before: []limiter.Spend{{Take: 1}}, spend: limiter.Spend{Take: 5000}, want: plan.Denied},
		{name: "a take behind a refund", at: 500, before: []limiter.Spend{{Refund: 1}}, spend: limiter.Spend{Take: 5001}, want: plan.Commutes},
		{name: "a look", at: 500, spend: limiter.Spend{Look: true}, want: plan.Passed},
		{name: "a look at nothing", at: 0, spend: limiter.Spend{Look: true}, want: plan.Denied},
		{name: "a charge", at: 0, spend: limiter.Spend{Charge: 100_000}, want: plan.Commutes},
		{name: "a charge that the debt floor cuts", at: 0, spend: limiter.Spend{Charge: 100_001}, want: plan.Exact},
		{name: "a refund", at: 0, spend: limiter.Spend{Refund: 100_001}, want: plan.Commutes},
		{name: "a take and a charge", at: 500, spend: limiter.Spend{Take: 5000, Charge: 7000}, want: plan.Commutes},
		{name: "a charge beside a take that is not there", at: 500, spend: limiter.Spend{Take: 5001, Charge: 1}, want: plan.Exact},
		{name: "a refund of a full bucket, and a take", at: 5000, before: []limiter.Spend{{Refund: 5}}, spend: limiter.Spend{Take: 10_000}, want: plan.Commutes},
		{name: "a refund that overflows, and a take", at: 500, before: []limiter.Spend{{Refund: 6000}}, spend: limiter.Spend{Take: 10_000}, want: plan.Exact},
		{name: "a refund behind a lift", at: 5000, before: []limiter.Spend{{Take: 1000}}, spend: limiter.Spend{Refund: 1000}, want: plan.Commutes},
		{name: "a refund of more than a lift", at: 5000, before: []limiter.Spend{{Take: 1000}}, spend: limiter.Spend{Refund: 1001}, want: plan.Exact},
		{name: "a take of all with a lift", at: 5000, options: plan.Options{Lift: 20, Guard: 10}, spend: limiter.Spend{Take: 10_000}, want: plan.Commutes},
		{name: "another limit", at: 0, spend: limiter.Spend{Limit: "other", Take: 1}, want: plan.Passed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			st := plan.NewStage(b.state, epoch+tt.at, tt.options)
			weigh := func(sp limiter.Spend) (plan.Verdict, *plan.Request) {
				if sp.Limit == "" {
					sp.Limit = "l"
				}
				_, r := op(t, b.state.Limits, 1, sp)
				return st.Weigh(r), r
			}
			for _, sp := range tt.before {
				v, r := weigh(sp)
				if v != plan.Commutes {
					t.Fatalf("verdict %d before", v)
				}
				st.Apply(r)
			}
			got, r := weigh(tt.spend)
			if got != tt.want {
				t.Fatalf("verdict %d, want %d", got, tt.want)
			}
			if got != plan.Commutes && got != plan.Exact {
				return
			}
			left := r.Spends[0].Left
			st.Apply(r)
			w := st.Write(b.id(2), 1)
			if w.Exact() != (tt.want == plan.Exact) {
				t.Errorf("the write is exact: %t", w.Exact())
			}
			b.land(w)
			if now := plan.At(b.state, epoch+tt.at).Tokens(0, epoch+tt.at); now != left.Tokens && tt.options.Lift == 0 {
				t.Errorf("%d millitokens are left, want the %d of the answer", now, left.Tokens)
			}
		})
	}
}

// TestNoItemIsCreatedAtADoubtfulTime: a wrong time in a new item could not be found later.
func TestNoItemIsCreatedAtADoubtfulTime(t *testing.T) {
	limits := limitsOf(t, limiter.PerSecond("l", 10))
	for _, doubtful := range []bool{false, true} {
		st := plan.NewStage(schema.NewBucket(limits, 1, epoch), epoch, plan.Options{Doubtful: doubtful})
		want := plan.Exact
		if doubtful {
			want = plan.Waits
		}
		if got := st.Weigh(request(t, limits)); got != want {
			t.Errorf("doubtful %t: %d, want %d", doubtful, got, want)
		}
	}
}

// TestAForcedRequestIsBookedInFull: a call that was admitted late costs its whole take,
// also beyond the debt floor.
func TestAForcedRequestIsBookedInFull(t *testing.T) {
	b := newBench(t)
	_, r := op(t, b.state.Limits, 1, limiter.Spend{Limit: "l", Take: 100_000, Charge: 3000})
	st := plan.NewStage(b.state, epoch, plan.Options{})
	forced := r.Force()
	if got := st.Weigh(forced); got != plan.Exact {
		t.Fatalf("verdict %d, want %d", got, plan.Exact)
	}
	st.Apply(forced)
	b.land(st.Write(b.id(2), 1))
	if got := plan.At(b.state, epoch).Tokens(0, epoch); got != -103_000 {
		t.Errorf("the balance is %d, want -103000", got)
	}
}

// TestAnAskTakesWhatThereIs: a request that asks takes as much of it as is there.
func TestAnAskTakesWhatThereIs(t *testing.T) {
	b := newBench(t)
	r := &plan.Request{Limits: b.state.Limits, Generation: 1, Spends: []plan.Spend{{Limit: "l", Ask: 7000}}}
	st := plan.NewStage(b.state, epoch+300, plan.Options{})
	if got := st.Weigh(r); got != plan.Commutes || r.Spends[0].Take != 3000 {
		t.Fatalf("verdict %d, take %d; want %d and 3000", got, r.Spends[0].Take, plan.Commutes)
	}
	st.Apply(r)
	b.land(st.Write(b.id(2), 1))
	undo := r.Undo()
	st = plan.NewStage(b.state, epoch+300, plan.Options{})
	st.Weigh(undo)
	st.Apply(undo)
	b.land(st.Write(b.id(2), 1))
	if got := plan.At(b.state, epoch+300).Tokens(0, epoch+300); got != 3000 {
		t.Errorf("%d millitokens are there again, want 3000", got)
	}
}
