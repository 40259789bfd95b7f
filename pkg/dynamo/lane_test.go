package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

var errTest = errors.New("for the test") //nolint:gochecknoglobals // a sentinel

// t0 is when the tests begin, by the clock of the buckets.
func t0() time.Time { return time.UnixMilli(4_102_444_800_000) }

// after returns the time some seconds after the beginning.
func after(seconds float64) time.Time {
	return t0().Add(time.Duration(seconds * float64(time.Second)))
}

func limitsOf(t *testing.T, limits ...limiter.Limit) *limiter.Limits {
	t.Helper()
	set, err := limiter.NewLimits(limits...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// op is an op on an entity's bucket under one limit.
func op(t *testing.T, entity string, l limiter.Limit, sp limiter.Spend) limiter.Op {
	t.Helper()
	sp.Limit = l.Name
	return limiter.Op{
		Bucket: limiter.BucketKey{Namespace: "default", Entity: entity, Resource: "r"},
		Limits: limitsOf(t, l), Generation: 1, Spends: []limiter.Spend{sp},
	}
}

func tokens(n int64) int64 { return n * limiter.Milli }

// mustTake decides ops and requires the answer.
func mustTake(t *testing.T, s limiter.Store, now time.Time, want bool, ops ...limiter.Op) {
	t.Helper()
	got, err := s.Take(t.Context(), now, ops)
	if err != nil || got != want {
		t.Fatalf("Take at %v: got %t, %v; want %t", now.Sub(t0()), got, err, want)
	}
}

// wantBalance requires a balance, in tokens.
func wantBalance(t *testing.T, s limiter.Store, now time.Time, o limiter.Op, want int64) {
	t.Helper()
	o.Spends = []limiter.Spend{{Limit: o.Spends[0].Limit}}
	mustTake(t, s, now, true, o)
	if got := o.Spends[0].Bucket.Tokens; got != tokens(want) {
		t.Errorf("balance of %s at %v: %d millitokens, want %d", o.Bucket.Entity, now.Sub(t0()), got, tokens(want))
	}
}

func closing(tb testing.TB, stores ...*dynamo.Store) {
	tb.Helper()
	for _, s := range stores {
		if err := s.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	}
}

// calls returns how many calls of each operation f makes.
func calls(db *dynamofake.DB, f func()) map[string]int {
	before := db.Counts()
	f()
	made := map[string]int{}
	for op, n := range db.Counts() {
		n -= before[op]
		if n > 0 {
			made[op] = n
		}
	}
	return made
}

func wantCalls(t *testing.T, got map[string]int, want map[string]int) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("calls: got %v, want %v", got, want)
	}
}

// A steady decision is one UpdateItem and no read. That holds with any refill that is
// due, with several limits, and for a charge and a refund.
func TestOneWriteADecision(t *testing.T) {
	db := newTable(t)
	s := newStore(t, db, nil)
	defer closing(t, s)
	set := limitsOf(t, limiter.PerSecond("rps", 2), limiter.PerMinute("tpm", 1000))
	o := limiter.Op{Bucket: limiter.BucketKey{Entity: "e", Resource: "r"}, Limits: set, Generation: 1}
	made := func(now time.Time, spends ...limiter.Spend) map[string]int {
		o.Spends = spends
		return calls(db, func() { mustTake(t, s, now, true, o) })
	}
	mustTake(t, s, t0(), true, limiter.Op{Bucket: o.Bucket, Limits: set, Generation: 1, Spends: []limiter.Spend{{Limit: "rps"}}}) // the namespace
	wantCalls(t, made(t0(), limiter.Spend{Limit: "rps", Take: tokens(1)}), map[string]int{"PutItem": 1})
	units := db.WriteUnits()
	for i := range 40 {
		got := made(after(float64(i)*0.7), limiter.Spend{Limit: "rps", Take: tokens(1)}, limiter.Spend{Limit: "tpm", Take: tokens(15)})
		wantCalls(t, got, map[string]int{"UpdateItem": 1})
	}
	wantCalls(t, made(after(100), limiter.Spend{Limit: "tpm", Charge: tokens(500)}), map[string]int{"UpdateItem": 1})
	wantCalls(t, made(after(200), limiter.Spend{Limit: "tpm", Refund: tokens(5)}), map[string]int{"UpdateItem": 1})
	if got := db.WriteUnits() - units; got != 42 {
		t.Errorf("%d write units for 42 decisions", got)
	}
}

// A decision over three buckets is three writes at once.
func TestBucketsAreTakenFromAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, nil)
		defer closing(t, s)
		ops := []limiter.Op{
			op(t, "child", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)}),
			op(t, "parent", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)}),
			op(t, "root", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)}),
		}
		mustTake(t, s, t0(), true, ops...)
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 5 * time.Millisecond} })
		began := time.Now()
		wantCalls(t, calls(db, func() { mustTake(t, s, t0(), true, ops...) }), map[string]int{"UpdateItem": 3})
		if took := time.Since(began); took != 5*time.Millisecond {
			t.Errorf("three writes of 5 ms took %v", took)
		}
	})
}

// Callers of one bucket share writes: while one is under way the others gather.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, nil)
		defer closing(t, s)
		o := op(t, "e", limiter.Custom("l", 10_000, 5000, time.Second), limiter.Spend{Take: tokens(1)})
		mustTake(t, s, t0(), true, o)
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 4 * time.Millisecond} })
		began := time.Now()
		var admitted atomic.Int64
		const callers, each = 256, 50
		made := calls(db, func() {
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range each {
						ok, err := s.Take(t.Context(), t0().Add(time.Since(began)), []limiter.Op{op(t, "e", limiter.Custom("l", 10_000, 5000, time.Second), limiter.Spend{Take: tokens(1)})})
						if err != nil {
							t.Error(err)
						}
						if ok {
							admitted.Add(1)
						}
					}
				})
			}
			wg.Wait()
		})
		elapsed := time.Since(began)
		if most := 10_000 + int64(elapsed/time.Millisecond)*5; admitted.Load() > most || admitted.Load() < most-callers {
			t.Errorf("%d admitted in %v, want %d", admitted.Load(), elapsed, most)
		}
		writes := made["UpdateItem"]
		t.Logf("%d decisions, %d writes, %d reads", callers*each, writes, made["GetItem"])
		if writes*100 > callers*each {
			t.Errorf("%d writes for %d decisions, want at most 0.01 each", writes, callers*each)
		}
	})
}

// The write of a take can fail in these ways, and be put right.
func TestFaultsThatAreSurvived(t *testing.T) {
	type kinds = []dynamofake.Kind
	for _, tc := range []struct {
		name   string
		faults []dynamofake.Kind
		want   map[string]int
	}{
		{"throttled", kinds{dynamofake.Throttle, dynamofake.Throttle, dynamofake.Conflict}, map[string]int{"UpdateItem": 4}},
		{"an error before it was applied", kinds{dynamofake.ServerError}, map[string]int{"UpdateItem": 2}},
		{"an error after it was applied", kinds{dynamofake.AppliedError}, map[string]int{"UpdateItem": 2}},
		{"the reply is lost", kinds{dynamofake.LoseReply}, map[string]int{"UpdateItem": 2}},
		{"the replies are lost, and it is throttled", kinds{dynamofake.LoseReply, dynamofake.Throttle, dynamofake.LoseReply}, map[string]int{"UpdateItem": 4}},
		{"applied twice", kinds{dynamofake.Duplicate}, map[string]int{"UpdateItem": 1}},
	} {
		for _, spend := range []limiter.Spend{{Take: tokens(3)}, {Charge: tokens(3)}} {
			t.Run(fmt.Sprintf("%s, charge %t", tc.name, spend.Charge > 0), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					db := newTable(t)
					s := newStore(t, db, nil)
					defer closing(t, s)
					o := op(t, "e", limiter.PerDay("l", 10), spend)
					mustTake(t, s, t0(), true, op(t, "e", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)}))
					steps := make([]dynamofake.Step, len(tc.faults))
					for i, k := range tc.faults {
						steps[i] = dynamofake.Step{Op: "UpdateItem", Fault: dynamofake.Fault{Kind: k}}
					}
					db.SetPlan(dynamofake.Script(steps...))
					wantCalls(t, calls(db, func() { mustTake(t, s, t0(), true, o) }), tc.want)
					wantBalance(t, s, t0(), o, 6)
				})
			})
		}
	}
}

// A create whose reply is lost is found, and not done twice.
func TestLostReplyToACreate(t *testing.T) {
	db := newTable(t)
	s := newStore(t, db, nil)
	defer closing(t, s)
	o := op(t, "e", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(3)})
	wantBalance(t, s, t0(), o, 10)
	db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "PutItem", Fault: dynamofake.Fault{Kind: dynamofake.LoseReply}}))
	wantCalls(t, calls(db, func() { mustTake(t, s, t0(), true, o) }), map[string]int{"PutItem": 2})
	wantBalance(t, s, t0(), o, 7)
}

// intercept lets a test come between a call and its reply.
type intercept struct {
	*dynamofake.DB
	update atomic.Pointer[updateItem] // nil = none comes between
}

type updateItem func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error)

func (i *intercept) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if update := i.update.Load(); update != nil {
		return (*update)(ctx, in)
	}
	return i.DB.UpdateItem(ctx, in)
}

// set has the next UpdateItem go to update.
func (i *intercept) set(update updateItem) { i.update.Store(&update) }

// losing returns an intercept whose next UpdateItem is applied, then between is
// done, then the reply is lost.
func losing(db *dynamofake.DB, between func()) *intercept {
	i := &intercept{DB: db}
	i.set(func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
		i.update.Store(nil)
		if _, err := db.UpdateItem(ctx, in); err != nil {
			return nil, err
		}
		between()
		return nil, errTest
	})
	return i
}

// A lost reply is found although another replica wrote meanwhile: replicas leave
// their ids in slots of their own.
func TestLostReplyAndAnotherReplica(t *testing.T) {
	o := op(t, "e", limiter.PerDay("l", 100), limiter.Spend{Take: tokens(3)})
	for range 20 {
		db := newTable(t)
		b := newStore(t, db, nil)
		mustTake(t, b, t0(), true, o)
		client := losing(db, func() { mustTake(t, b, t0(), true, o) })
		a := newStore(t, client, nil)
		mustTake(t, a, t0(), true, o)
		if v := balanceOf(t, b, o); v != tokens(91) {
			t.Fatalf("%d millitokens are left of 100 tokens after three takes of 3", v)
		}
		closing(t, a, b)
	}
}

func balanceOf(t *testing.T, s limiter.Store, o limiter.Op) int64 {
	t.Helper()
	o.Spends = []limiter.Spend{{Limit: o.Spends[0].Limit}}
	mustTake(t, s, t0(), true, o)
	return o.Spends[0].Bucket.Tokens
}

// A refund whose reply is lost is sent again, and given once: when it was applied it
// is refused and finds its id, and when it was not it is now.
func TestLostReplyToARefund(t *testing.T) {
	l := limiter.PerDay("l", 100)
	give, spend := op(t, "e", l, limiter.Spend{Refund: tokens(5)}), op(t, "e", l, limiter.Spend{Take: tokens(20)})

	db := newTable(t)
	client := losing(db, func() {})
	update := client.update.Swap(nil)
	s := newStore(t, client, nil)
	defer closing(t, s)
	mustTake(t, s, t0(), true, spend)
	client.update.Store(update)
	wantCalls(t, calls(db, func() { mustTake(t, s, t0(), true, give) }), map[string]int{"UpdateItem": 2})
	wantBalance(t, s, t0(), give, 85)

	client.set(func(context.Context, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
		client.update.Store(nil)
		return nil, errTest // never arrived, but the store cannot see that
	})
	mustTake(t, s, t0(), true, give)
	wantBalance(t, s, t0(), give, 90)
}

// A write that DynamoDB refuses for good is an error, never an admission.
func TestFaultsThatAreNot(t *testing.T) {
	for _, tc := range []struct {
		fault dynamofake.Fault
		want  error
	}{
		{dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}}, dynamo.ErrDenied},
		{dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "ValidationException", Message: "no"}}, limiter.ErrInvalid},
		{dynamofake.Fault{Kind: dynamofake.Throttle}, limiter.ErrUnavailable},
		{dynamofake.Fault{Kind: dynamofake.ServerError}, limiter.ErrUncertain},
	} {
		t.Run(fmt.Sprint(tc.want), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				s := newStore(t, db, nil)
				defer closing(t, s)
				o := op(t, "e", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)})
				mustTake(t, s, t0(), true, o)
				db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return tc.fault })
				if ok, err := s.Take(t.Context(), t0(), []limiter.Op{o}); ok || !errors.Is(err, tc.want) {
					t.Errorf("got %t, %v; want %v", ok, err, tc.want)
				}
				db.SetPlan(nil)
				time.Sleep(10 * time.Second) // until calls are tried again
				wantBalance(t, s, t0(), o, 9)
			})
		})
	}
}
