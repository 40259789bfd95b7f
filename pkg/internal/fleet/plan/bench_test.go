package plan_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// BenchmarkTake is the cost of a take beside its round trip: the plan, the write, and the
// state that the reply brings.
func BenchmarkTake(b *testing.B) {
	w := newWorld(b)
	limits := limitsOf(b, limiter.PerSecond("rps", 1_000_000))
	_, state := w.send(takes(b, schema.NewBucket(limits, 1, epoch), epoch, plan.Options{}, w.id(7), limiter.Spend{Limit: "rps", Take: 1}), 0)
	item := state.Attributes()
	o, r := op(b, limits, 1, limiter.Spend{Limit: "rps", Take: 1})
	b.ReportAllocs()
	for b.Loop() {
		image, err := schema.ParseBucket(tableName, w.key(0), item, limits)
		if err != nil {
			b.Fatal(err)
		}
		st := plan.NewStage(image, epoch+1, plan.Options{})
		st.Weigh(r)
		st.Apply(r)
		q := st.Write(w.id(7), 1)
		_ = requestOf(b, q.Update(w.key(0)))
		q.Settle(q.After())
		r.Report(o, true)
	}
}

// BenchmarkJoin is the cost of one more take that is joined into a write.
func BenchmarkJoin(b *testing.B) {
	w := newWorld(b)
	limits := limitsOf(b, limiter.PerSecond("rps", 1_000_000_000))
	_, state := w.send(takes(b, schema.NewBucket(limits, 1, epoch), epoch, plan.Options{}, w.id(7), limiter.Spend{Limit: "rps", Take: 1}), 0)
	_, r := op(b, limits, 1, limiter.Spend{Limit: "rps", Take: 1})
	st := plan.NewStage(state, epoch+1, plan.Options{})
	b.ReportAllocs()
	for b.Loop() {
		st.Weigh(r)
		st.Apply(r)
	}
}
