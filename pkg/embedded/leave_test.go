package embedded_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// expiring is a context that is done from when the store begins to wait on, and does not
// wake it.
type expiring struct {
	context.Context //nolint:containedctx // it is one

	over bool
}

func (c *expiring) Done() <-chan struct{} {
	c.over = true
	return nil
}

func (c *expiring) Err() error {
	if c.over {
		return context.DeadlineExceeded
	}
	return nil
}

// A caller that is gone during a commit takes nothing. No token is taken before the file covers it,
// and afterwards the caller is gone.
func TestACallerGoneDuringACommitTakesNothing(t *testing.T) {
	s, err := embedded.Open(t.TempDir(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	limits, err := limiter.NewLimits(limiter.PerDay("l", 1000))
	if err != nil {
		t.Fatal(err)
	}
	op := func(entity string, take int64) limiter.Op {
		key := limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: entity, Resource: "r"}
		return limiter.Op{Bucket: key, Limits: limits, Generation: 1, Spends: []limiter.Spend{{Limit: "l", Take: take}}}
	}
	now := time.Now()
	for name, ops := range map[string][]limiter.Op{"one bucket": {op("one", 100_000)}, "two buckets": {op("two", 100_000), op("three", 100_000)}} {
		admitted, err := s.Take(&expiring{Context: t.Context()}, now, ops)
		if admitted || !errors.Is(err, limiter.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %t, %v; want an error of %q that wraps %q", name, admitted, err, limiter.ErrUnavailable, context.DeadlineExceeded)
		}
		for i := range ops {
			look := []limiter.Op{op(ops[i].Bucket.Entity, 0)}
			if _, err := s.Take(t.Context(), now, look); err != nil {
				t.Fatal(err)
			}
			if got := look[0].Spends[0].Bucket.Tokens; got != 1_000_000 {
				t.Errorf("%s: %d millitokens are left of 1000000", name, got)
			}
		}
	}
}
