package plan_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

const epoch = 1_760_000_000_000 // Unix ms

// lockstep is one bucket of a single writer beside the reference, which reckons with
// rational numbers.
type lockstep struct {
	*rapid.T
	*world
	reference limiter.Store
	state     *schema.Bucket
	now       int64
	seen      uint64 // greatest generation of the limits that the bucket is under
	scripts   bool   // the server runs scripts
	unseen    bool   // the writer has not seen the item
}

func (s *lockstep) Helper()                      { s.T.Helper() }
func (s *lockstep) Fatalf(f string, args ...any) { s.T.Helper(); s.T.Fatalf(f, args...) }

// TestDecisionsAreThoseOfTheReference: a bucket with one writer decides as one of rational
// numbers does, and reports the same to the part of a millitoken.
func TestDecisionsAreThoseOfTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &lockstep{T: t, world: newWorld(t), reference: storetest.NewReference(), now: epoch}
		x, y := limiter.PerMinute("x", 10), limiter.Custom("y", 100, 7, 1100*time.Millisecond).WithMaxDebt(5)
		limits := limitsOf(t, x, y, limiter.Unlimited("z"))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			s.now += rapid.SampledFrom([]int64{0, 0, 1, 7, 100, 999, 5000, 60_000, 3_600_000}).Draw(t, "elapsed")
			s.decide(limits, 1, drawSpends(t, limits))
		}
	})
}

// TestChangesOfLimitsAreThoseOfTheReference: the same while limits come, go and change, with
// versions in any order.
func TestChangesOfLimitsAreThoseOfTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &lockstep{T: t, world: newWorld(t), reference: storetest.NewReference(), now: epoch}
		x, y, z := limiter.PerMinute("x", 10), limiter.Custom("y", 100, 7, 1100*time.Millisecond), limiter.PerHour("z", 1000).WithMaxDebt(5)
		sets := []*limiter.Limits{
			limitsOf(t, x), limitsOf(t, x, y), limitsOf(t, x, y, z), limitsOf(t, y, z), limitsOf(t, x.WithBurst(4), z.WithMaxDebt(limiter.NoDebt)),
			limitsOf(t, limiter.PerSecond("x", 3), y.WithBurst(500)), limitsOf(t, limiter.Unlimited("x"), y), limitsOf(t, x.WithBurst(30), limiter.Unlimited("y"), z.WithBurst(9)),
			limitsOf(t, limiter.Custom("x", 10, 0, time.Second), y), limitsOf(t, limiter.Custom("x", 4, 0, time.Minute), limiter.Custom("y", 50, 0, time.Second)), // as those of a window
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			s.now += rapid.SampledFrom([]int64{0, 0, 1, 7, 100, 999, 5000, 60_000, 3_600_000}).Draw(t, "elapsed")
			limits := rapid.SampledFrom(sets).Draw(t, "limits")
			s.decide(limits, rapid.Uint64Range(1, 6).Draw(t, "generation"), drawSpends(t, limits))
		}
	})
}

// TestTakesFromUnseenItemsAreThoseOfTheReference: the same on a server that runs scripts, where the writer has not seen
// the item now and then.
func TestTakesFromUnseenItemsAreThoseOfTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &lockstep{T: t, world: newWorld(t), reference: storetest.NewReference(), now: epoch, scripts: true}
		x, y := limiter.PerMinute("x", 10).WithMaxDebt(5), limiter.Custom("y", 100, 7, 1100*time.Millisecond)
		sets := []*limiter.Limits{limitsOf(t, x, y), limitsOf(t, x, y), limitsOf(t, x.WithBurst(30), limiter.Custom("y", 50, 0, time.Second))}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			s.now += rapid.SampledFrom([]int64{0, 0, 1, 7, 100, 999, 5000, 60_000, 3_600_000}).Draw(t, "elapsed")
			limits := rapid.SampledFrom(sets).Draw(t, "limits")
			s.unseen = rapid.Bool().Draw(t, "unseen")
			s.decide(limits, max(s.seen, rapid.Uint64Range(1, 6).Draw(t, "generation")), drawSpends(t, limits))
		}
	})
}

// drawSpends draws spends of some of the limits.
func drawSpends(t *rapid.T, limits *limiter.Limits) []limiter.Spend {
	first := rapid.IntRange(0, limits.Len()-1).Draw(t, "first limit")
	spends := make([]limiter.Spend, rapid.IntRange(1, limits.Len()).Draw(t, "spends"))
	amount := func(what string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, what) }
	for i := range spends {
		l := limits.At((first + i) % limits.Len())
		most := max(l.Capacity, 1) * 1500
		sp := limiter.Spend{Limit: l.Name}
		switch rapid.IntRange(0, 6).Draw(t, "what") {
		case 0:
			sp.Look = true
		case 1:
			sp.Charge = amount("charge", 8*most)
		case 2:
			sp.Refund = amount("refund", most)
		case 3:
			sp.Take, sp.Charge, sp.Refund = amount("take", most), amount("charge", most), amount("refund", most)
		default:
			sp.Take = amount("take", most)
		}
		spends[i] = sp
	}
	return spends
}

// decide has the bucket and the reference decide, and compares all that they say.
func (s *lockstep) decide(limits *limiter.Limits, generation uint64, spends []limiter.Spend) {
	s.Helper()
	got, r := op(s, limits, generation, spends...)
	want := limiter.Op{Limits: limits, Generation: generation, Spends: slices.Clone(spends)}
	admitted, err := s.reference.Take(context.Background(), time.UnixMilli(s.now), []limiter.Op{want})
	if err != nil {
		s.Fatalf("reference: %v", err)
	}
	verdict, decided := plan.Commutes, s.unseen && s.state != nil && s.state.Exists() && s.decideUnseen(r)
	if !decided {
		verdict = s.decideSeen(limits, generation, r)
	}
	r.Report(got, true)
	if r.Admitted != admitted {
		s.Fatalf("%d: verdict %d, unseen %t, admitted %t, want %t; %+v, want %+v", s.now-epoch, verdict, decided, r.Admitted, admitted, got.Spends, want.Spends)
	}
	for i, sp := range got.Spends {
		wanted := want.Spends[i]
		if sp.Held != wanted.Held || sp.Held && (sp.Exceeded != wanted.Exceeded || sp.Bucket != wanted.Bucket || sp.Index != wanted.Index || sp.Limits.Hash() != wanted.Limits.Hash()) {
			s.Fatalf("%d: verdict %d, unseen %t: spend %+v\nwant %+v", s.now-epoch, verdict, decided, sp, wanted)
		}
	}
}

// decideUnseen decides a request without the state of the item. It reports false where the item refused that.
func (s *lockstep) decideUnseen(r *plan.Request) bool {
	s.Helper()
	st := plan.NewStage(schema.NewBucket(r.Limits, r.Generation, s.now), s.now, plan.Options{Scripts: true})
	if v := st.Weigh(r); v != plan.Exact {
		return false
	}
	st.Apply(r)
	w := st.Write(s.id(7), 1)
	landed, image := s.send(w, 0)
	if s.state = image; landed {
		w.Settle(image)
		s.seen = max(s.seen, r.Generation)
	}
	return landed
}

// decideSeen decides a request by the state of the item.
func (s *lockstep) decideSeen(limits *limiter.Limits, generation uint64, r *plan.Request) plan.Verdict {
	s.Helper()
	if s.state == nil {
		s.state = schema.NewBucket(limits, generation, s.now)
	}
	st := plan.NewStage(s.state, s.now, plan.Options{Scripts: s.scripts})
	s.seen = max(s.seen, s.state.Version.Generation)
	if _, err := st.Bring(s.state.Limits, s.seen); err != nil { // limits that came back are as new as their last state
		s.Fatalf("%v", err)
	}
	brought, err := st.Bring(limits, generation)
	if err != nil {
		s.Fatalf("%v", err)
	}
	if brought == plan.Same {
		s.seen = max(s.seen, generation)
	}
	verdict := st.Weigh(r)
	if verdict == plan.Commutes || verdict == plan.Exact {
		st.Apply(r)
		w := st.Write(s.id(7), 1)
		landed, image := s.send(w, 0)
		if !landed {
			s.Fatalf("a write was refused")
		}
		w.Settle(image)
		s.sameState(w.After(), image)
		s.state = image
	} else if brought == plan.Newer {
		w := st.Write(s.id(7), 1)
		if _, s.state = s.send(w, 0); s.state.Limits.Hash() != limits.Hash() {
			s.Fatalf("the bucket is under %v", s.state.Limits)
		}
	}
	if brought == plan.Newer {
		s.seen = generation
	}
	return verdict
}
