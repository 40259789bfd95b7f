package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

// The store's answer is lost once: the tokens are gone, and the error says that they may be.
func ExampleNewFaulty() {
	ctx, now := context.Background(), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	store := storetest.NewFaulty(storetest.NewReference(), storetest.Script(storetest.Take, storetest.FailAfter))
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 10))
	if err != nil {
		fmt.Println(err)
		return
	}
	ops := []limiter.Op{{
		Bucket: limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: "user", Resource: "api"},
		Limits: limits,
		Spends: []limiter.Spend{{Limit: "rpm", Take: 4 * limiter.Milli}},
	}}
	_, err = store.Take(ctx, now, ops)
	fmt.Println("uncertain:", errors.Is(err, limiter.ErrUncertain))
	admitted, err := store.Take(ctx, now, ops)
	fmt.Println("admitted:", admitted, "left:", ops[0].Spends[0].Bucket.Tokens, "error:", err)
	// Output:
	// uncertain: true
	// admitted: true left: 2000 error: <nil>
}
