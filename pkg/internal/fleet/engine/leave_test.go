package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

func patient(cfg *engine.Config) { cfg.Attempt, cfg.Budget = 0, 0 }

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

// wantBalance requires the balance that a bucket has now, in whole tokens.
func wantBalance(t *testing.T, e *engine.Engine, o limiter.Op, want int64) {
	t.Helper()
	o.Spends = []limiter.Spend{{Limit: o.Spends[0].Limit}}
	mustTake(t, e, true, o)
	if got := o.Spends[0].Bucket.Tokens / limiter.Milli; got != want {
		t.Errorf("%d tokens are left, want %d", got, want)
	}
}

// The take of a write under way is given back when its caller leaves, and stays taken where
// the policy admits. Nothing stays taken uncounted.
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
		{"the write arrives late", dynamofake.Fault{Kind: dynamofake.HoldRequest}, false, 900, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				e := newEngine(t, db, patient)
				defer closing(t, e)
				o := op(t, "e", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(each)})
				mustTake(t, e, true, o)
				for i := range calls {
					db.SetPlan(once(tc.fault))
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(15*time.Millisecond, cancel)
					late := op(t, "e", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(each)})
					late.KeepTaken = tc.keep
					if admitted, err := e.Take(ctx, time.Now(), []limiter.Op{late}); admitted || !errors.Is(err, limiter.ErrUncertain) || !errors.Is(err, context.Canceled) {
						t.Errorf("call %d: got %t, %v; want %v", i, admitted, err, limiter.ErrUncertain)
					}
					time.Sleep(time.Second)
				}
				synctest.Wait()
				wantBalance(t, e, o, tc.left)
				if got := e.Stats(); got.Lost != tc.lost || got.Owed != 0 {
					t.Errorf("%d give-backs are lost and %d wait, want %d and 0", got.Lost, got.Owed, tc.lost)
				}
			})
		})
	}
}

// Calls whose deadline passes while DynamoDB answers are decided late, by the last state
// that this process saw. The admitted ones are taken in the end, and the others are not.
func TestLateDecisionsAreTaken(t *testing.T) {
	for _, fault := range []dynamofake.Fault{
		{Latency: 40 * time.Millisecond},
		{Kind: dynamofake.HoldReply},
		{Kind: dynamofake.HoldRequest},
		{Kind: dynamofake.Throttle},
	} {
		t.Run(fmt.Sprint(fault.Kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				e := newEngine(t, db, patient)
				defer closing(t, e)
				o := op(t, "e", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(50)})
				mustTake(t, e, true, o)
				left, late := int64(950), 0
				for range 30 {
					db.SetPlan(once(fault))
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					began := time.Now()
					ops := []limiter.Op{op(t, "e", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(50)})}
					admitted, err := e.Take(ctx, time.Now(), ops)
					cancel()
					if took := time.Since(began); err != nil || took > deadline {
						t.Fatalf("got %v after %v; want a decision in %v", err, took, deadline)
					}
					if admitted {
						left -= 50
					}
					if ops[0].Late {
						late++
					}
					time.Sleep(300 * time.Millisecond)
				}
				time.Sleep(10 * time.Second)
				wantBalance(t, e, o, left)
				if got := e.Stats(); fault.Kind != dynamofake.Throttle && late == 0 || got.Lost != 0 || got.Owed != 0 || got.LateAdmitted+got.LateDenied != int64(late) {
					t.Errorf("%d late decisions, statistics %+v", late, got)
				}
			})
		})
	}
}

// A call over two buckets is admitted late only if both allow it; then nothing of it stays
// taken.
func TestALateCascadeIsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		e := newEngine(t, db, patient)
		defer closing(t, e)
		child := op(t, "child", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(10)})
		parent := op(t, "parent", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(10)})
		mustTake(t, e, true, child, parent)
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 40 * time.Millisecond} })
		time.Sleep(time.Second)
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			admitted, err := e.Take(ctx, time.Now(), []limiter.Op{child, parent})
			cancel()
			if err != nil || admitted {
				t.Errorf("got %t, %v; want a denial", admitted, err)
			}
			time.Sleep(200 * time.Millisecond)
		}
		wantBalance(t, e, child, 990)
		if got := e.Stats(); got.Owed != 0 || got.Lost != 0 {
			t.Errorf("statistics %+v", got)
		}
	})
}

// While DynamoDB does not answer at all, calls are decided late for a second; after that
// their policy decides.
func TestAnOutageIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		e := newEngine(t, db, patient)
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.HoldRequest} })
		began := time.Now()
		for time.Since(began) < 3*time.Second {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			ops := []limiter.Op{op(t, "e", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(1)})}
			since := time.Since(began)
			_, err := e.Take(ctx, time.Now(), ops)
			cancel()
			switch {
			case since < 900*time.Millisecond && (err != nil || !ops[0].Late):
				t.Errorf("after %v: got %v, late %t; want a late decision", since, err, ops[0].Late)
			case since > 1100*time.Millisecond && !errors.Is(err, limiter.ErrUnavailable) && !errors.Is(err, limiter.ErrUncertain):
				t.Errorf("after %v: got %v; want %v", since, err, limiter.ErrUnavailable)
			}
			time.Sleep(20 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = e.Close(ctx) // a late admission cannot be written
	})
}

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

// A charge whose reply is lost, while more replicas write than the item has ids for, is
// booked once or reported as uncertain. It is never booked twice.
func TestAChargeIsBookedOnce(t *testing.T) {
	const others = 10
	for round := range 30 {
		db := newTable(t)
		l := limiter.PerDay("l", 1000)
		one := func(e *engine.Engine, sp limiter.Spend) { mustTake(t, e, true, op(t, "e", l, sp)) }
		var replicas []*engine.Engine
		for range others {
			replicas = append(replicas, newEngine(t, db, nil))
			one(replicas[len(replicas)-1], limiter.Spend{Take: 1})
		}
		lost := false
		client := &spoiling{DB: db, spoils: func(in *dynamodb.UpdateItemInput) bool {
			return !lost && strings.Contains(fmt.Sprint(in.ExpressionAttributeNames), "lc")
		}}
		client.after = func() {
			lost = true
			for range 3 {
				for _, e := range replicas {
					one(e, limiter.Spend{Charge: 1})
				}
			}
		}
		e := newEngine(t, client, nil)
		one(e, limiter.Spend{Take: 1})
		_, err := e.Take(t.Context(), time.Now(), []limiter.Op{op(t, "e", l, limiter.Spend{Charge: tokens(100)})})
		if err != nil && !errors.Is(err, limiter.ErrUncertain) || !lost {
			t.Fatalf("got %v, a reply was lost: %t", err, lost)
		}
		o := op(t, "e", l, limiter.Spend{})
		mustTake(t, replicas[0], true, o)
		if got := (tokens(1000) - o.Spends[0].Bucket.Tokens) / tokens(50); got != 2 {
			t.Errorf("round %d: about %d tokens were booked, want 100, error %v", round, 50*got, err)
		}
		closing(t, append(replicas, e)...)
	}
}

// If a charge of two buckets was booked in one of them and could not be in the other, the
// call is uncertain. Made again it would be booked twice in the first.
func TestAChargeThatWasBookedInPartIsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		e := newEngine(t, db, patient)
		defer closing(t, e)
		ops := []limiter.Op{
			op(t, "child", limiter.PerDay("l", 1000), limiter.Spend{Charge: tokens(1)}),
			op(t, "parent", limiter.PerDay("l", 1000), limiter.Spend{Charge: tokens(1)}),
		}
		mustTake(t, e, true, ops...)
		db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
			if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.Contains(fmt.Sprint(in.Key["PK"]), "parent") {
				return dynamofake.Fault{Kind: dynamofake.Throttle}
			}
			return dynamofake.Fault{}
		})
		_, err := e.Take(t.Context(), time.Now(), ops)
		db.SetPlan(nil)
		time.Sleep(time.Minute) // the breaker may have opened
		wantBalance(t, e, ops[0], 998)
		if !errors.Is(err, limiter.ErrUncertain) {
			t.Errorf("got %v, want %v", err, limiter.ErrUncertain)
		}
	})
}
