package limiter_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// keysOf is a store that records the buckets of takes.
type keysOf struct {
	limiter.Store

	keys []limiter.BucketKey
}

func (s *keysOf) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	for i := range ops {
		s.keys = append(s.keys, ops[i].Bucket)
	}
	return s.Store.Take(ctx, now, ops)
}

// collidingPlan is a name whose hash is among the variants of shadows.
const collidingPlan = "plan 14685747"

// The buckets of a shadow are shadows, those of ancestors too. No others are, with any limits, name
// of limits and label.
func TestShadowsHaveKeysOfTheirOwn(t *testing.T) {
	store := &keysOf{Store: newStore(t)}
	l := newLimiter(t, limiter.Config{Store: store}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 10_000))})
	rapid.Check(t, func(rt *rapid.T) {
		req := take("a", "m", "rpm", 0)
		of := &req.Takes[0]
		of.Parents, of.Shadow = []string{"p"}, rapid.Bool().Draw(rt, "shadow")
		of.Label = rapid.SampledFrom([]string{"", "trial"}).Draw(rt, "label")
		if rapid.Bool().Draw(rt, "own") {
			of.Limits = set(t, limiter.PerMinute("rpm", rapid.Int64Range(1, 1000).Draw(rt, "rate")))
			of.LimitsOf = rapid.SampledFrom([]string{"", "gold", collidingPlan}).Draw(rt, "plan")
		}
		store.keys = nil
		decide(t, l, t0, req)
		if len(store.keys) != 2 {
			rt.Fatalf("buckets %+v, want two", store.keys)
		}
		for _, k := range store.keys {
			if k.Shadow() != of.Shadow {
				rt.Errorf("Shadow() of %+v is %t; the take has %t", k, k.Shadow(), of.Shadow)
			}
		}
	})
}
