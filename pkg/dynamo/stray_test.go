package dynamo_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// doubling is a client that says of a write that it was throttled, and applies it after 40 ms. Other writes are
// throttled until then.
type doubling struct {
	*dynamofake.DB

	next, under atomic.Bool
}

func (c *doubling) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	switch {
	case c.next.CompareAndSwap(true, false):
		c.under.Store(true)
		go func() {
			time.Sleep(40 * time.Millisecond)
			_, _ = c.DB.UpdateItem(context.WithoutCancel(ctx), in)
			c.under.Store(false)
		}()
	case !c.under.Load():
		return c.DB.UpdateItem(ctx, in, opts...)
	}
	return nil, &types.ProvisionedThroughputExceededException{}
}

// A charge or a refund whose caller is decided late is booked once, also where a copy of its first write is applied though
// another one was throttled.
func TestStraysAreBookedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		spend limiter.Spend
		want  int64
	}{
		"refund": {limiter.Spend{Limit: "l", Refund: tokens(100)}, 800},
		"charge": {limiter.Spend{Limit: "l", Charge: tokens(100)}, 600},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &doubling{DB: newTable(t)}
				c.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 3 * time.Millisecond} })
				s := newStore(t, c, func(cfg *dynamo.Config) { cfg.Attempt, cfg.Budget = 0, 0 })
				defer closing(t, s)
				limit := limiter.Custom("l", 1000, 1, 24*time.Hour)
				mustTake(t, s, time.Now(), true, op(t, "e", limit, limiter.Spend{Take: tokens(300)}))
				time.Sleep(10 * time.Millisecond)
				c.next.Store(true)
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
				defer cancel()
				if _, err := s.Take(ctx, time.Now(), []limiter.Op{op(t, "e", limit, tc.spend)}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
				wantBalance(t, s, time.Now(), op(t, "e", limit, limiter.Spend{}), tc.want)
			})
		})
	}
}
