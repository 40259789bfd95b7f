package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// A rollback that DynamoDB has no capacity for waits, and is done when it has.
func TestGiveBacksWait(t *testing.T) {
	for _, kind := range []dynamofake.Kind{dynamofake.Throttle, dynamofake.Conflict} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Budget = time.Second })
				children := owing(t, db, s, kind)
				time.Sleep(30 * time.Second)
				if got := s.Stats(); got.Lost != 0 {
					t.Errorf("%d give-backs are lost after 30 s", got.Lost)
				}
				db.SetPlan(nil)
				time.Sleep(5 * time.Second)             // the breaker tries
				mustTake(t, s, t0(), true, children[0]) // waiting rollbacks go with it, or later
				closing(t, s)                           // waits for them
				if got := s.Stats(); got.Owed != 0 || got.Lost != 0 {
					t.Errorf("%d give-backs wait and %d are lost in the end", got.Owed, got.Lost)
				}
				other := newStore(t, db, nil)
				defer closing(t, other)
				wantBalance(t, other, t0(), children[0], 6)
				for _, child := range children[1:] {
					wantBalance(t, other, t0(), child, 8)
				}
			})
		})
	}
}

// Rollbacks do not wait for ever, and Close does not wait longer than it may.
func TestGiveBacksAreGivenUp(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed %t", closed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Budget = time.Second })
				children := owing(t, db, s, dynamofake.Throttle)
				if closed {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Close: %v", err)
					}
				} else {
					time.Sleep(2 * time.Minute)
				}
				if got := s.Stats(); got.Owed != 0 || got.Lost != int64(len(children)) {
					t.Errorf("%d give-backs wait and %d are lost, want 0 and %d", got.Owed, got.Lost, len(children))
				}
				db.SetPlan(nil)
				closing(t, s)
			})
		})
	}
}

// owing returns the ops of five children whose requests a parent has denied. Their
// takes cannot be rolled back, because writes that take nothing fail from now on.
func owing(t *testing.T, db *dynamofake.DB, s *dynamo.Store, kind dynamofake.Kind) []limiter.Op {
	t.Helper()
	child := func(i int) limiter.Op {
		return op(t, fmt.Sprint("child", i), limiter.PerDay("l", 10), limiter.Spend{Take: tokens(2)})
	}
	parent := op(t, "parent", limiter.PerDay("l", 1), limiter.Spend{Take: tokens(2)})
	children := make([]limiter.Op, 5)
	for i := range children {
		children[i] = child(i)
		mustTake(t, s, t0(), true, children[i])
	}
	db.SetPlan(func(call dynamofake.Call) dynamofake.Fault {
		in, ok := call.Input.(*dynamodb.UpdateItemInput)
		if !ok {
			return dynamofake.Fault{}
		}
		for name, attr := range in.ExpressionAttributeNames {
			if strings.HasPrefix(attr, "lw") && strings.Contains(*in.ConditionExpression, name+"<>") {
				return dynamofake.Fault{} // it takes
			}
		}
		return dynamofake.Fault{Kind: kind}
	})
	for i := range children {
		mustTake(t, s, t0(), false, child(i), parent)
	}
	return children
}
