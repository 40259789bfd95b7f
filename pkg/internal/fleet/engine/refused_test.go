package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// faults is a plan by which the next calls meet these faults, one each, and none after them.
func faults(each ...dynamofake.Fault) dynamofake.Plan {
	return func(dynamofake.Call) dynamofake.Fault {
		if len(each) == 0 {
			return dynamofake.Fault{}
		}
		next := each[0]
		each = each[1:]
		return next
	}
}

// A take is refused, as the refund that it was planned behind arrives after it. The reply to
// the refund comes first. The refused take must not count as tokens that are gone.
func TestARefusedTakeTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		e := newEngine(t, db, nil)
		defer closing(t, e)
		l := limiter.PerDay("l", 10)
		mustTake(t, e, true, op(t, "e", l, limiter.Spend{Take: tokens(9)}))

		gate := dynamofake.NewGate()
		db.SetPlan(faults(dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: gate}, dynamofake.Fault{Latency: 50 * time.Millisecond}))
		var g sync.WaitGroup
		g.Go(func() { mustTake(t, e, true, op(t, "e", l, limiter.Spend{Refund: tokens(5)})) })
		time.Sleep(10 * time.Millisecond)
		g.Go(func() { mustTake(t, e, true, op(t, "e", l, limiter.Spend{Take: tokens(4)})) })
		time.Sleep(10 * time.Millisecond)
		gate.Release()
		g.Wait()
		if got := e.Stats().Refused; got != 1 {
			t.Errorf("%d writes were refused, want 1: the take that came before the refund", got)
		}
		wantBalance(t, e, op(t, "e", l, limiter.Spend{}), 2)
	})
}

// twice sends each update a second time, and hands on the reply to that: a proxy in between may
// do so, and the reply to the copy may overtake the other.
type twice struct{ *dynamofake.DB }

func (c twice) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	_, _ = c.DB.UpdateItem(ctx, in, opts...)
	return c.DB.UpdateItem(ctx, in, opts...)
}

// A copy of a write is refused since the write was applied. That is no refusal: nothing is taken,
// charged or refunded once more, and the take of a caller that has left is given back.
func TestARefusedCopyOfAWriteThatWasApplied(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spend limiter.Spend
		left  int64 // of 900
	}{
		{"take", limiter.Spend{Take: tokens(100)}, 800},
		{"charge", limiter.Spend{Charge: tokens(100)}, 800},
		{"refund", limiter.Spend{Refund: tokens(50)}, 950},
		{"take with a charge", limiter.Spend{Take: tokens(100), Charge: tokens(50)}, 750},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				e := newEngine(t, twice{db}, nil)
				defer closing(t, e)
				l := limiter.PerDay("l", 1000)
				mustTake(t, e, true, op(t, "e", l, limiter.Spend{Take: tokens(100)})) // creates the item
				mustTake(t, e, true, op(t, "e", l, tc.spend))
				wantBalance(t, e, op(t, "e", l, limiter.Spend{}), tc.left)
			})
		})
	}
}

// The same for a caller that leaves before the reply.
func TestARefusedCopyOfATakeOfACallerWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		e := newEngine(t, twice{db}, nil)
		defer closing(t, e)
		l := limiter.PerDay("l", 1000)
		mustTake(t, e, true, op(t, "e", l, limiter.Spend{Take: tokens(100)}))
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 20 * time.Millisecond} })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, cancel)
		if admitted, err := e.Take(ctx, time.Now(), []limiter.Op{op(t, "e", l, limiter.Spend{Take: tokens(100)})}); admitted || !errors.Is(err, limiter.ErrUncertain) {
			t.Errorf("got %t, %v; want %v", admitted, err, limiter.ErrUncertain)
		}
		time.Sleep(time.Second)
		wantBalance(t, e, op(t, "e", l, limiter.Spend{}), 900)
	})
}

// stray refuses an update, and applies a copy of it just before one that is planned in its place.
type stray struct {
	*dynamofake.DB

	refuse func(in *dynamodb.UpdateItemInput) error // the next update; nil = none
	held   *dynamodb.UpdateItemInput
}

func (c *stray) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	switch {
	case c.refuse != nil:
		err := c.refuse(in)
		c.held, c.refuse = in, nil
		return nil, err
	case c.held != nil:
		if _, err := c.DB.UpdateItem(ctx, c.held, opts...); err != nil {
			return nil, err
		}
		c.held = nil
	}
	return c.DB.UpdateItem(ctx, in, opts...)
}

// throttled answers that there is no capacity.
func (*stray) throttled(*dynamodb.UpdateItemInput) error {
	return dynamofake.Fault{Kind: dynamofake.Throttle}.Before("UpdateItem")
}

// unmet answers that the item does not meet the condition, as for a bound that another write moves.
func (c *stray) unmet(in *dynamodb.UpdateItemInput) error {
	out, err := c.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: in.TableName, Key: in.Key})
	if err != nil {
		return err
	}
	return dynamofake.Fault{Kind: dynamofake.Fail, Err: &types.ConditionalCheckFailedException{Item: out.Item}}.Before("UpdateItem")
}

// A copy of a write is applied after another copy of it was refused: a proxy in between may double
// a message. Its charges and refunds are booked once, and the answers say so.
func TestACopyThatIsAppliedAfterARefusal(t *testing.T) {
	for _, tc := range []struct {
		name   string
		spend  limiter.Spend
		refuse func(*stray, *dynamodb.UpdateItemInput) error
		left   int64 // of 900
	}{
		{"charge, throttled", limiter.Spend{Charge: tokens(100)}, (*stray).throttled, 800},
		{"charge, unmet", limiter.Spend{Charge: tokens(100)}, (*stray).unmet, 800},
		{"refund, throttled", limiter.Spend{Refund: tokens(50)}, (*stray).throttled, 950},
		{"refund, unmet", limiter.Spend{Refund: tokens(50)}, (*stray).unmet, 950},
		{"take with a charge", limiter.Spend{Take: tokens(100), Charge: tokens(50)}, (*stray).throttled, 750},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &stray{DB: newTable(t)}
				e := newEngine(t, db, nil)
				defer closing(t, e)
				l := limiter.PerDay("l", 1000)
				mustTake(t, e, true, op(t, "e", l, limiter.Spend{Take: tokens(100)})) // creates the item
				db.refuse = func(in *dynamodb.UpdateItemInput) error { return tc.refuse(db, in) }
				mustTake(t, e, true, op(t, "e", l, tc.spend))
				wantBalance(t, e, op(t, "e", l, limiter.Spend{}), tc.left)
				if s := e.Stats(); s.Owed != 0 || s.Lost != 0 {
					t.Errorf("%d requests are owed and %d lost, want none", s.Owed, s.Lost)
				}
			})
		})
	}
}
