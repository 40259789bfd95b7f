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

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// spoiling is a client that loses the replies to the writes that it spoils, after it did
// something.
type spoiling struct {
	*dynamofake.DB
	spoils func(in *dynamodb.UpdateItemInput) bool
	after  func()
}

func (c *spoiling) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := c.DB.UpdateItem(ctx, in, opts...)
	if err == nil && c.spoils(in) {
		c.after()
		return nil, errors.New("connection reset by peer")
	}
	return out, err
}

// adds reports whether an update adds to an attribute.
func adds(in *dynamodb.UpdateItemInput, attr string) bool {
	for name, a := range in.ExpressionAttributeNames {
		if a == attr && strings.Contains(*in.UpdateExpression, name+" ") {
			return true
		}
	}
	return false
}

// once is a plan by which the next call meets a fault, and none after it.
func once(f dynamofake.Fault) dynamofake.Plan {
	met := false
	return func(dynamofake.Call) dynamofake.Fault {
		if met {
			return dynamofake.Fault{}
		}
		met = true
		return f
	}
}

// A caller who leaves while its write is under way is admitted by nobody but its policy:
// what the write takes is given back, and stays taken where the policy admits. Nothing
// stays taken uncounted.
func TestCallersWhoLeave(t *testing.T) {
	const calls, each = 5, 100
	for _, tc := range []struct {
		name  string
		fault dynamofake.Fault
		keep  bool
		left  int64 // of 900
		lost  int64
	}{
		{"the reply comes late", dynamofake.Fault{Latency: 25 * time.Millisecond}, false, 900, 0},
		{"the reply comes late, admitted", dynamofake.Fault{Latency: 25 * time.Millisecond}, true, 400, 0},
		{"the reply is lost", dynamofake.Fault{Kind: dynamofake.HoldReply}, false, 900, 0},
		{"the reply is lost, admitted", dynamofake.Fault{Kind: dynamofake.HoldReply}, true, 400, 0},
		{"the write never arrives", dynamofake.Fault{Kind: dynamofake.HoldRequest}, false, 900, calls},
		{"the write never arrives, admitted", dynamofake.Fault{Kind: dynamofake.HoldRequest}, true, 900, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Attempt, cfg.Budget = 0, 0 })
				defer closing(t, s)
				fault := tc.fault
				if fault.Kind == dynamofake.HoldRequest {
					fault.Gate = dynamofake.NewGate()
				}
				o := op(t, "e", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(each)})
				mustTake(t, s, t0(), true, o)
				for i := range calls {
					db.SetPlan(once(fault))
					ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
					late := o
					late.KeepTaken = tc.keep
					late.Spends = []limiter.Spend{{Limit: "l", Take: tokens(each)}}
					if admitted, err := s.Take(ctx, t0(), []limiter.Op{late}); admitted || !errors.Is(err, limiter.ErrUncertain) {
						t.Errorf("call %d: got %t, %v; want %v", i, admitted, err, limiter.ErrUncertain)
					}
					cancel()
					time.Sleep(time.Second)
				}
				synctest.Wait()
				wantBalance(t, s, t0(), o, tc.left)
				if got := s.Stats(); got.Lost != tc.lost || got.Owed != 0 {
					t.Errorf("%d give-backs are lost and %d wait, want %d and 0", got.Lost, got.Owed, tc.lost)
				}
			})
		})
	}
}

// A charge whose reply is lost, while more replicas write than there are ids of, is booked
// once or reported as uncertain; it is never booked twice.
func TestAChargeIsBookedOnce(t *testing.T) {
	const others = 10
	var db *dynamofake.DB
	for round := range 30 {
		db = newTable(t)
		l := limiter.PerDay("l", 1000)
		var replicas []*dynamo.Store
		for range others {
			replicas = append(replicas, newStore(t, db, nil))
		}
		lost := false
		client := &spoiling{DB: db, spoils: func(in *dynamodb.UpdateItemInput) bool { return !lost && adds(in, "b_l_tc") }}
		client.after = func() {
			lost = true
			for range 3 {
				for _, s := range replicas {
					mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: 1}))
				}
			}
		}
		s := newStore(t, client, nil)
		mustTake(t, replicas[0], t0(), true, op(t, "e", l, limiter.Spend{Take: 1}))
		for _, other := range replicas {
			mustTake(t, other, t0(), true, op(t, "e", l, limiter.Spend{Take: 1}))
		}
		wantBooked := int64(100)
		_, err := s.Take(t.Context(), t0(), []limiter.Op{op(t, "e", l, limiter.Spend{Charge: tokens(wantBooked)})})
		if err != nil && !errors.Is(err, limiter.ErrUncertain) {
			t.Fatal(err)
		}
		if !lost {
			t.Fatal("no reply was lost")
		}
		o := op(t, "e", l, limiter.Spend{})
		mustTake(t, replicas[0], t0(), true, o)
		if got, want := o.Spends[0].Bucket.Tokens, tokens(1000-wantBooked)-4*others-1; got != want {
			t.Errorf("round %d: %d millitokens are left, want %d, error %v", round, got, want, err)
		}
		closing(t, append(replicas, s)...)
	}
}

// A charge of which the first copy comes late is booked once: by that, or by another write
// that is sure to be the only one.
func TestALateCopyOfAChargeBooksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		l := limiter.PerHour("l", 1000)
		s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Attempt, cfg.Budget = 0, 0 })
		other := newStore(t, db, nil)
		defer closing(t, s, other)
		mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: tokens(300)}))
		mustTake(t, other, t0(), true, op(t, "e", l, limiter.Spend{Take: 1000}))
		gate := dynamofake.NewGate()
		db.SetPlan(once(dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: gate}))
		done := make(chan error, 1)
		go func() {
			_, err := s.Take(t.Context(), t0(), []limiter.Op{op(t, "e", l, limiter.Spend{Charge: tokens(100)})})
			done <- err
		}()
		time.Sleep(50 * time.Millisecond)
		mustTake(t, other, t0(), true, op(t, "e", l, limiter.Spend{Refund: tokens(301)})) // it is full: the charge's write is refused
		err := <-done
		gate.Release()
		synctest.Wait()
		o := op(t, "e", l, limiter.Spend{})
		mustTake(t, other, t0(), true, o)
		booked := (tokens(1000) - o.Spends[0].Bucket.Tokens) / tokens(100)
		if booked > 1 || err == nil && booked != 1 || err != nil && !errors.Is(err, limiter.ErrUncertain) {
			t.Errorf("it was booked %d times, error %v", booked, err)
		}
	})
}

// A copy of a take that arrives late puts an old id back into the slot of the process. A
// charge that is sent again after that, its reply being late, books nothing more.
func TestALateCopyOfATakeLetsNoChargeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		l := limiter.PerHour("l", 1000)
		s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Attempt, cfg.Budget = 0, 0 })
		defer closing(t, s)
		mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: tokens(300)}))
		take, charge := dynamofake.NewGate(), dynamofake.NewGate()
		db.SetPlan(once(dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: take}))
		mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: tokens(10)}))
		db.SetPlan(once(dynamofake.Fault{Kind: dynamofake.HoldReply, Gate: charge}))
		done := make(chan error, 1)
		go func() {
			_, err := s.Take(t.Context(), t0(), []limiter.Op{op(t, "e", l, limiter.Spend{Charge: tokens(100)})})
			done <- err
		}()
		synctest.Wait() // the charge is applied
		take.Release()
		synctest.Wait() // so is the take, once more
		err := <-done
		charge.Release()
		synctest.Wait()
		o := op(t, "e", l, limiter.Spend{})
		mustTake(t, s, t0(), true, o)
		if left := o.Spends[0].Bucket.Tokens; left != tokens(580) && left != tokens(590) || err != nil {
			t.Errorf("%d millitokens are left, want 1000 - 300 - 10 or 20 - 100 tokens; error %v", left, err)
		}
	})
}

// Where a charge of two buckets was booked in one of them and could not be in the other
// the call is uncertain: made again it would be booked twice in the first.
func TestAChargeThatWasBookedInPartIsUncertain(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		t.Run(fmt.Sprintf("the caller leaves %t", leaves), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Attempt, cfg.Budget = 0, 0 })
				defer closing(t, s)
				ops := []limiter.Op{
					op(t, "child", limiter.PerDay("l", 1000), limiter.Spend{Charge: tokens(1)}),
					op(t, "parent", limiter.PerDay("l", 1000), limiter.Spend{Charge: tokens(1)}),
				}
				mustTake(t, s, t0(), true, ops...)
				db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
					if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.Contains(fmt.Sprint(in.Key["PK"]), "parent") {
						return dynamofake.Fault{Kind: dynamofake.Throttle}
					}
					return dynamofake.Fault{}
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if leaves {
					ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
					defer cancel()
				}
				_, err := s.Take(ctx, t0(), ops)
				db.SetPlan(nil)
				time.Sleep(time.Minute) // the breaker may have opened
				wantBalance(t, s, t0(), ops[0], 998)
				if !errors.Is(err, limiter.ErrUncertain) {
					t.Errorf("got %v, want %v", err, limiter.ErrUncertain)
				}
			})
		})
	}
}
