package plan_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TestATakeIsToldWhatOthersLeft: the answers to the requests of a write include writes
// that were applied between its plan and its own application.
func TestATakeIsToldWhatOthersLeft(t *testing.T) {
	b := newBench(t)
	st := plan.NewStage(b.state, epoch+900, plan.Options{})
	requests := make([]*plan.Request, 0, 2)
	for range 2 {
		_, r := op(t, b.state.Limits, 1, limiter.Spend{Limit: "l", Take: 1000})
		st.Weigh(r)
		st.Apply(r)
		requests = append(requests, r)
	}
	w := st.Write(b.id(2), 1)
	b.land(b.spend(900, 3, limiter.Spend{Take: 500}))
	b.land(w)
	w.Settle(b.state)
	for i, want := range []int64{7500, 6500} {
		if got := requests[i].Spends[0]; got.Left.Tokens != want || got.Found != want+1000 {
			t.Errorf("the answer to request %d found %d millitokens and leaves %d, want %d", i, got.Found, got.Left.Tokens, want)
		}
	}
}

// TestRefundsAreToldOfTheCapacity: a refund for which the capacity has too little room changes
// nothing in the answers to others of its write. Any writes may be applied between.
func TestRefundsAreToldOfTheCapacity(t *testing.T) {
	for _, tt := range []struct {
		name    string
		between int64   // millitokens that another write takes
		want    []int64 // left, in the answers
	}{
		{"alone", 0, []int64{7000, 9000, 10_000}},
		{"behind a take", 500, []int64{6500, 8500, 10_000}},
		{"behind a greater take", 4500, []int64{2500, 4500, 6500}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.land(b.spend(900, 3, limiter.Spend{Take: 4000}))
			st := plan.NewStage(b.state, epoch+900, plan.Options{})
			requests := make([]*plan.Request, 0, len(tt.want))
			for range tt.want {
				_, r := op(t, b.state.Limits, 1, limiter.Spend{Limit: "l", Refund: 2000})
				st.Weigh(r)
				st.Apply(r)
				requests = append(requests, r)
			}
			w := st.Write(b.id(2), 1)
			if tt.between > 0 {
				b.land(b.spend(900, 3, limiter.Spend{Take: tt.between}))
			}
			b.land(w)
			w.Settle(b.state)
			for i, want := range tt.want {
				if got := requests[i].Spends[0]; got.Left.Tokens != want || got.Found != want {
					t.Errorf("the answer to refund %d found %d millitokens and leaves %d, want %d", i, got.Found, got.Left.Tokens, want)
				}
			}
		})
	}
}

// TestOutcomes: the outcome of a write whose reply is lost, by an image.
func TestOutcomes(t *testing.T) {
	take := func(b *bench) *plan.Write { return b.spend(500, 2, limiter.Spend{Take: 1000}) }
	charge := func(b *bench) *plan.Write { return b.spend(500, 2, limiter.Spend{Charge: 1000}) }
	exact := func(b *bench) *plan.Write { return b.spend(500, 2, limiter.Spend{Charge: 1_000_000}) }
	grant := func(b *bench) *plan.Write { return b.lease(500, 2, 100, 100, 0) }
	for _, tt := range []struct {
		name    string
		write   func(b *bench) *plan.Write
		lands   bool
		between func(b *bench) *plan.Write // after it; nil = nothing
		want    plan.Outcome
	}{
		{"a take under way", take, false, nil, plan.Open},
		{"a take that landed", take, true, nil, plan.Landed},
		{"a take under way while another landed", take, false, func(b *bench) *plan.Write { return b.spend(600, 3, limiter.Spend{Take: 1}) }, plan.Open},
		{"a take whose id was replaced", take, true, func(b *bench) *plan.Write { return b.spend(600, 10, limiter.Spend{Take: 1}) }, plan.Open},
		{"a take before a grant that drops ids", take, true, func(b *bench) *plan.Write { return b.lease(500, 3, 1, 1, 0) }, plan.Lost},
		{"a charge under way", charge, false, nil, plan.Open},
		{"a charge that landed", charge, true, nil, plan.Landed},
		{"a charge before a grant", charge, true, func(b *bench) *plan.Write { return b.lease(500, 3, 1, 1, 0) }, plan.Landed},
		{"a charge that a grant refuses", charge, false, func(b *bench) *plan.Write { return b.lease(500, 3, 1, 1, 0) }, plan.Dead},
		{"a charge whose id was replaced", charge, true, func(b *bench) *plan.Write { return b.spend(600, 10, limiter.Spend{Charge: 1}) }, plan.Lost},
		{"an exact write under way", exact, false, nil, plan.Open},
		{"an exact write that landed", exact, true, nil, plan.Landed},
		{"an exact write that another refuses", exact, false, func(b *bench) *plan.Write { return b.spend(600, 3, limiter.Spend{Take: 1}) }, plan.Dead},
		{"a grant under way", grant, false, nil, plan.Open},
		{"a grant that landed", grant, true, nil, plan.Landed},
		{"a grant that another refuses", grant, false, func(b *bench) *plan.Write { return b.lease(500, 3, 1, 1, 0) }, plan.Dead},
		{"a grant that was reaped", grant, true, func(b *bench) *plan.Write { return b.lease(500, 2, 0, 0, 0) }, plan.Dead},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			w := tt.write(b)
			if tt.lands {
				b.land(w)
			}
			if tt.between != nil {
				b.land(tt.between(b))
			}
			if got := w.Outcome(b.state); got != tt.want {
				t.Errorf("outcome %d, want %d", got, tt.want)
			}
		})
	}
	b := newBench(t)
	created := takes(t, schema.NewBucket(b.state.Limits, 1, epoch), epoch, plan.Options{}, b.id(5), limiter.Spend{Limit: "l", Take: 1})
	if got := created.Outcome(nil); got != plan.Open {
		t.Errorf("a creation without an item: outcome %d, want %d", got, plan.Open)
	}
	if got := created.Outcome(b.state); got != plan.Dead {
		t.Errorf("a creation of an item that another one made: outcome %d, want %d", got, plan.Dead)
	}
	if got := take(b).Outcome(nil); got != plan.Lost {
		t.Errorf("a take of an item that is gone: outcome %d, want %d", got, plan.Lost)
	}
}

// TestTakesOfOneReplicaLandOnce: each of several takes that were under way together shows
// whether it was applied, and no second copy of any is.
func TestTakesOfOneReplicaLandOnce(t *testing.T) {
	b := newBench(t)
	writes := make([]*plan.Write, 0, schema.ChannelCount)
	for channel := range schema.ChannelCount {
		id := b.id(2)
		id.Channel = channel
		writes = append(writes, takes(b, b.state, epoch+500, plan.Options{}, id, limiter.Spend{Limit: "l", Take: 1000}))
	}
	for _, w := range writes {
		b.land(w)
	}
	for channel, w := range writes {
		if got := w.Outcome(b.state); got != plan.Landed {
			t.Errorf("the take of channel %d: outcome %d, want %d", channel, got, plan.Landed)
		}
		b.refused(w)
	}
}

// TestPipelinedWritesReckonWithEachOther: writes that are planned from the result of the
// one before take no more than there is, and their charges follow each other.
func TestPipelinedWritesReckonWithEachOther(t *testing.T) {
	b := newBench(t)
	first := b.spend(500, 2, limiter.Spend{Take: 3000})
	second := b.spendOn(first.After(), 510, 2, limiter.Spend{Charge: 2000})
	third := b.spendOn(second.After(), 520, 2, limiter.Spend{Refund: 500})
	st := plan.NewStage(third.After(), epoch+520, plan.Options{})
	_, r := op(t, b.state.Limits, 1, limiter.Spend{Limit: "l", Take: 701})
	if got := st.Weigh(r); got != plan.Denied {
		t.Errorf("a take of more than is left: verdict %d, want %d", got, plan.Denied)
	}
	for _, w := range []*plan.Write{first, second, third} {
		b.land(w)
	}
	if got := plan.At(b.state, epoch+520).Tokens(0, epoch+520); got != 700 {
		t.Errorf("%d millitokens are left, want 700", got)
	}
}

// TestAWriteOnAnotherState: a write on a state that it was not planned from has the result that
// the table makes of it.
func TestAWriteOnAnotherState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(t)
		spend := func() *plan.Write {
			n := rapid.Int64Range(0, f.limits.Params(0).Capacity).Draw(t, "amount")
			sp := rapid.SampledFrom([]limiter.Spend{{Limit: "a", Take: n}, {Limit: "a", Charge: n}, {Limit: "a", Refund: n}, {Limit: "b", Take: n}}).Draw(t, "spend")
			lift := rapid.SampledFrom([]int64{0, 20}).Draw(t, "lift")
			st := plan.NewStage(f.truth, f.now, plan.Options{Lift: lift, Guard: lift / 2})
			_, r := op(f, f.limits, 1, sp)
			f.apply(st, r)
			return st.Write(f.id(uint32(rapid.IntRange(0, 2).Draw(t, "replica"))), 1) // #nosec G115 -- few
		}
		for range rapid.IntRange(1, 10).Draw(t, "rounds") {
			f.now += rapid.SampledFrom([]int64{0, 1, 20, 500}).Draw(t, "elapsed")
			late, first := spend(), spend()
			if late == nil || first == nil || late.Exact() {
				continue
			}
			if landed, image := f.send(first, 0); landed {
				f.truth = image
			}
			want := late.On(f.truth)
			landed, image := f.send(late, 0)
			if landed != (want != f.truth) {
				t.Fatalf("the write landed: %t", landed)
			}
			f.sameState(want, image)
			f.truth = image
		}
	})
}
