package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// DynamoDB takes 300 operators and 4,096 bytes in an expression. With any limits an
// expression stays far below these.
const (
	mostOperators = 153
	mostBytes     = 2400
	mostClauses   = 260
)

// sizes are the greatest expressions so far.
type sizes struct{ operators, bytes, clauses int }

// measure counts an update: operators as DynamoDB does, and attributes that are compared,
// set, added to or removed.
func (s *sizes) measure(in *dynamodb.UpdateItemInput) {
	for _, expression := range [...]string{*in.ConditionExpression, *in.UpdateExpression} {
		s.bytes = max(s.bytes, len(expression))
		s.clauses = max(s.clauses, strings.Count(expression, "#"))
	}
	s.operators = max(s.operators, strings.Count(*in.ConditionExpression, "#")+strings.Count(*in.ConditionExpression, " AND "), strings.Count(*in.UpdateExpression, "-"))
}

// manyLimits draws up to 16 limits of 60 long names.
func manyLimits(t *rapid.T) *limiter.Limits {
	n := rapid.SampledFrom([]int{1, 2, 8, 15, 16, 16, 16}).Draw(t, "limits")
	first := rapid.IntRange(0, 59).Draw(t, "first")
	all := make([]limiter.Limit, 0, n)
	for i := range n {
		name := fmt.Sprintf("%s%02d", strings.Repeat("n", limiter.MaxLimitName-2), (first+i)%60)
		l := limiter.Custom(name, rapid.SampledFrom([]int64{50, 70, 1_000_000}).Draw(t, "capacity"), 1, 24*time.Hour)
		all = append(all, l.WithMaxDebt(rapid.SampledFrom([]int64{0, 3, limiter.NoDebt}).Draw(t, "debt")))
	}
	return limitsOf(t, all...)
}

// TestABucketNeverBricks: limits come, go and change in any way, with leases and shards.
// DynamoDB accepts each write, and each decision is made.
func TestABucketNeverBricks(t *testing.T) {
	var s sizes
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		limits := manyLimits(t)
		b := schema.NewBucket(limits, 1, epoch)
		for g := range rapid.IntRange(1, 20).Draw(t, "changes") {
			st := plan.NewStage(b, epoch, plan.Options{})
			if g > 0 {
				limits = manyLimits(t)
				if _, err := st.Bring(limits, b.Version.Generation+1); err != nil {
					t.Fatalf("%v", err)
				}
			}
			spends := make([]limiter.Spend, 0, limits.Len())
			for i := range limits.Len() {
				l := limits.At(i)
				spends = append(spends, limiter.Spend{Limit: l.Name, Charge: limiter.Milli * rapid.Int64Range(1, rapid.SampledFrom([]int64{1, 1, 2 * l.Capacity}).Draw(t, "most")).Draw(t, "charge")})
			}
			_, r := op(t, limits, b.Version.Generation+1, spends...)
			if v := st.Weigh(r); v != plan.Commutes && v != plan.Exact {
				t.Fatalf("verdict %d", v)
			}
			st.Apply(r)
			b = s.apply(w, st.Write(w.id(1), 1))
			b = s.refund(w, b)
			if rapid.IntRange(0, 3).Draw(t, "reshape") == 0 {
				b = s.reshape(w, b)
			}
		}
	})
	t.Logf("expressions of up to %d operators, %d bytes and %d clauses", s.operators, s.bytes, s.clauses)
	if s.operators > mostOperators || s.bytes > mostBytes || s.clauses > mostClauses {
		t.Errorf("expressions of up to %d operators, %d bytes and %d clauses, want %d, %d and %d at most", s.operators, s.bytes, s.clauses, mostOperators, mostBytes, mostClauses)
	}
}

// refund gives a millitoken to each limit and takes it, by a commuting write where there is
// no debt.
func (s *sizes) refund(w *world, b *schema.Bucket) *schema.Bucket {
	spends := make([]limiter.Spend, 0, b.Limits.Len())
	for i := range b.Limits.Len() {
		spends = append(spends, limiter.Spend{Limit: b.Limits.At(i).Name, Refund: limiter.Milli, Take: 1})
	}
	st := plan.NewStage(b, epoch, plan.Options{})
	_, r := op(w, b.Limits, b.Version.Generation+1, spends...)
	if _, err := st.Bring(b.Limits, b.Version.Generation+1); err != nil {
		w.Fatalf("%v", err)
	}
	if v := st.Weigh(r); v != plan.Commutes && v != plan.Exact {
		w.Fatalf("verdict %d", v)
	}
	st.Apply(r)
	return s.apply(w, st.Write(w.id(1), 1))
}

// apply sends a write that finds the state that it was planned from.
func (s *sizes) apply(w *world, q *plan.Write) *schema.Bucket {
	if !q.Creates() {
		s.measure(requestOf(w, q.Update(w.key(0))))
	}
	landed, image := w.send(q, 0)
	if !landed {
		w.Fatalf("a write was refused")
	}
	return image
}

// reshape leases, or splits and merges, a bucket.
func (s *sizes) reshape(w *world, b *schema.Bucket) *schema.Bucket {
	lease := &schema.Lease{Replica: 3, Sequence: 1, Rate: 100, Room: 100}
	grant := plan.NewStage(b, epoch, plan.Options{})
	if err := grant.Lease(plan.LeaseWrite{Replica: 3, Lease: lease}); err != nil {
		w.Fatalf("%v", err)
	}
	b = s.apply(w, grant.Write(w.id(1), 1))
	reap := plan.NewStage(b, epoch, plan.Options{})
	if err := reap.Lease(plan.LeaseWrite{Replica: 3, Seen: lease}); err != nil {
		w.Fatalf("%v", err)
	}
	b = s.apply(w, reap.Write(w.id(1), 1))
	must := func(q *plan.Write, err error) *plan.Write {
		if err != nil {
			w.Fatalf("%v", err)
		}
		return q
	}
	b = s.apply(w, must(plan.Split(b, epoch, 1)))
	other, err := plan.Make(b)
	if err != nil {
		w.Fatalf("%v", err)
	}
	b = s.apply(w, must(plan.Clear(b, 1)))
	retired := must(plan.Retire(other, epoch, 1)).After()
	return s.apply(w, must(plan.Absorb(b, retired, epoch, 1)))
}
