package fleet_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// The decisions of several processes on one bucket are those of one token bucket that
// is asked one after the other, with what was lost, late or refused on the way: with
// a refill that does not count and refunds, and with time as a part of it. Writes
// that are applied twice are found.
func TestLinearizable(t *testing.T) {
	for _, tt := range []struct {
		name, load, defect string
		want               porcupine.CheckResult
	}{
		{"still", "still", "", porcupine.Ok},
		{"refilled", "refilled", "", porcupine.Ok},
		{"writes applied twice", "still", "a write that was applied before", porcupine.Illegal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFleet(t, scenario{history: tt.load, skews: make([]time.Duration, 3), decisions: 2400, faults: 40, defect: tt.defect, patience: 2 * time.Minute})
			h := f.chronicle(t)
			limit, err := chronicleLimit(tt.load)
			if err != nil {
				t.Fatal(err)
			}
			f.proxy.Require(t, faultKinds()...)
			if got := porcupine.CheckOperationsTimeout(bucketModel(limit), h, time.Minute); got != tt.want {
				t.Errorf("seed %d: the history of %d calls is %v, want %v", f.seed, len(h), got, tt.want)
			}
		})
	}
}

// chronicle runs the replicas and returns what they wrote down, without what was
// certainly not applied.
func (f *fleet) chronicle(t *testing.T) []porcupine.Operation {
	t.Helper()
	if err := f.each(t.Context(), func(ctx context.Context, i int) error {
		j := f.job("history", i, 0)
		j.Load, j.Decisions = f.history, f.decisions/int64(len(f.skews))
		return f.live(ctx, j, func(event) bool { return false })
	}); err != nil {
		t.Fatalf("seed %d: %v", f.seed, err)
	}
	var h []porcupine.Operation
	var n [4]int
	for i := range f.skews {
		all, err := readChronicle(f.job("history", i, 0).History)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			n[e.Outcome]++
			switch e.Outcome {
			case unavailable:
				continue
			case uncertain:
				e.To = math.MaxInt64 // it may be applied at any later time
			case admitted, denied:
			}
			h = append(h, porcupine.Operation{ClientId: i*chronicleCallers + e.Client, Input: e, Call: e.From, Output: e, Return: e.To})
		}
	}
	if n[admitted] == 0 || n[denied] == 0 {
		t.Errorf("seed %d: %d admitted and %d denied: the history shows nothing", f.seed, n[admitted], n[denied])
	}
	t.Logf("%d admitted, %d denied, %d unavailable, %d uncertain in %v; %+v; faults: %v", n[admitted], n[denied], n[unavailable], n[uncertain], f.took, f.stats, f.proxy.Faults())
	return h
}

// bucketModel is one token bucket, full in the beginning. A decision says at what
// time it was made. Where that is before what the bucket was last refilled to, by a
// replica that was asked later and answered first, both are compared at the later
// time: a refill that is not due to the cap can be booked at any time. What is not
// known to be applied was applied, or was not; when, makes no difference to a bucket
// that is not full.
func bucketModel(l limiter.Limit) porcupine.Model {
	p := l.Params()
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{tokenbucket.Bucket{Tokens: p.Capacity}} },
		Step: func(state, _, output any) []any {
			b, ok := state.(tokenbucket.Bucket)
			e, okEntry := output.(entry)
			if !ok || !okEntry {
				return nil
			}
			if e.Outcome == uncertain {
				return append([]any{state}, possible(p, b, e)...)
			}
			at := max(b.Refilled, e.Bucket.Refilled)
			after, ok := apply(p, b, e, at)
			if ok != (e.Outcome == admitted) || after.Tokens != e.Bucket.Refill(p, at).Tokens {
				return nil
			}
			return []any{after}
		},
		Equal: func(a, b any) bool { return a == b },
	}
	return nondeterministic.ToModel()
}

// apply does at a time what a call asks for.
func apply(p tokenbucket.Params, b tokenbucket.Bucket, e entry, at int64) (tokenbucket.Bucket, bool) {
	if e.Refund > 0 {
		return b.ForceConsume(p, -e.Refund, at), true
	}
	return b.TryConsume(p, e.Take, at)
}

// possible is what becomes of a bucket by a call in doubt that was applied.
func possible(p tokenbucket.Params, b tokenbucket.Bucket, e entry) []any {
	after, ok := apply(p, b, e, max(b.Refilled, e.From/int64(time.Millisecond)))
	if !ok {
		return nil
	}
	return []any{after}
}
