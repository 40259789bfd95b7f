package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// staleness is the age at which no request is denied by a state any more.
const staleness = 101 * time.Millisecond

// Tokens that another replica gives back are there a tenth of a second later: no denial
// goes by an older state. Callers that wait together share the read.
func TestDenialsAreByAFreshState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		a, b := newStore(t, db, nil), newStore(t, db, nil)
		defer closing(t, a, b)
		l := limiter.PerDay("l", 10)
		all, one := op(t, "e", l, limiter.Spend{Take: tokens(10)}), op(t, "e", l, limiter.Spend{Take: tokens(1)})
		mustTake(t, a, t0(), true, all)
		mustTake(t, a, t0(), false, one)
		mustTake(t, b, t0(), true, op(t, "e", l, limiter.Spend{Refund: tokens(1)}))
		time.Sleep(staleness)
		later := t0().Add(staleness)
		mustTake(t, a, later, true, one)
		mustTake(t, b, later, false, one)

		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: time.Millisecond} })
		var denied atomic.Int64
		made := calls(db, func() {
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					if ok, err := a.Take(t.Context(), later, []limiter.Op{op(t, "e", l, limiter.Spend{Take: tokens(1)})}); err == nil && !ok {
						denied.Add(1)
					}
				})
			}
			wg.Wait()
		})
		if denied.Load() != 100 || made["UpdateItem"] > 0 || made["GetItem"] > 3 {
			t.Errorf("%d denied, calls %v; want 100 denied by at most 3 reads", denied.Load(), made)
		}
	})
}

// Through a limiter, whose deny cache stands before the store, a storm of denials
// costs nothing.
func TestAStormOfDenialsCallsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, nil)
		defer closing(t, s)
		l, err := limiter.New(limiter.Config{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		req := &limiter.Request{Takes: []limiter.Take{{
			Entity: "e", Resource: "r", Limits: limitsOf(t, limiter.PerDay("l", 1)), Consume: []limiter.Consumption{{Limit: "l", Amount: tokens(1)}},
		}}}
		var d limiter.Decision
		decide := func(want bool) {
			if err := l.Decide(t.Context(), t0(), req, &d); err != nil || d.Admitted != want || d.Policy != limiter.Unset {
				t.Fatalf("got %t, %v, policy %v; want %t", d.Admitted, err, d.Policy, want)
			}
		}
		decide(true)
		decide(false)
		wantCalls(t, calls(db, func() {
			for range 1000 {
				decide(false)
			}
		}), map[string]int{})
	})
}

// A take from a child is rolled back when its parent denies, in the child's next
// write, also when the caller has gone by then.
func TestGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, nil)
		child := op(t, "child", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(2)})
		parent := op(t, "parent", limiter.PerDay("l", 3), limiter.Spend{Take: tokens(2)})
		mustTake(t, s, t0(), true, child, parent)
		mustTake(t, s, t0(), false, child, parent)
		if got := child.Spends[0].Bucket.Tokens; got != tokens(8) {
			t.Errorf("the answer for the child has %d millitokens, want 8000: as if nothing had been taken", got)
		}
		wantBalance(t, s, t0(), child, 8)
		wantBalance(t, s, t0(), parent, 1)

		time.Sleep(staleness)
		gate := dynamofake.NewGate()
		db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "GetItem", Fault: dynamofake.Fault{Kind: dynamofake.HoldReply, Gate: gate}}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := s.Take(ctx, t0().Add(time.Second), []limiter.Op{child, parent})
			done <- err
		}()
		synctest.Wait() // the child has given, the parent's denial is being confirmed
		cancel()
		if err := <-done; !errors.Is(err, limiter.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that left: %v", err)
		}
		gate.Release()
		closing(t, s) // waits for the rollback
		other := newStore(t, db, nil)
		defer closing(t, other)
		wantBalance(t, other, t0(), child, 8)
		if got := s.Stats().Lost; got != 0 {
			t.Errorf("%d give-backs lost", got)
		}
	})
}

// Close gives up on rollbacks when its context is done, and counts them.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, nil)
		child := op(t, "child", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(2)})
		parent := op(t, "parent", limiter.PerDay("l", 3), limiter.Spend{Take: tokens(2)})
		mustTake(t, s, t0(), true, child, parent)
		db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "UpdateItem"}, dynamofake.Step{Op: "UpdateItem", Fault: dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: dynamofake.NewGate()}}))
		mustTake(t, s, t0(), false, child, parent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v", err)
		}
		if got := s.Stats().Lost; got != 1 {
			t.Errorf("%d give-backs lost, want 1", got)
		}
		closing(t, s)
	})
}

// Two replicas with the same generation and different limits change the bucket once:
// they do not take turns, which would fill it again and again.
func TestReplicasThatDisagree(t *testing.T) {
	db := newTable(t)
	stores := []*dynamo.Store{newStore(t, db, nil), newStore(t, db, nil)}
	defer closing(t, stores...)
	sets := []*limiter.Limits{
		limitsOf(t, limiter.PerDay("a", 10), limiter.PerDay("x", 10)),
		limitsOf(t, limiter.PerDay("a", 10), limiter.PerDay("y", 10)),
	}
	admitted := 0
	for i := range 100 {
		o := op(t, "e", limiter.PerDay("a", 10), limiter.Spend{Take: tokens(1)})
		o.Limits = sets[i%2]
		if ok, err := stores[i%2].Take(t.Context(), t0(), []limiter.Op{o}); err != nil {
			t.Fatal(err)
		} else if ok {
			admitted++
		}
	}
	if admitted != 10 {
		t.Errorf("%d admitted of 10", admitted)
	}
}

// A faster period does not turn the remainder of a slow one into tokens.
func TestRemainderOfASlowRate(t *testing.T) {
	db := newTable(t)
	s := newStore(t, db, nil)
	defer closing(t, s)
	slow := op(t, "e", limiter.Custom("l", 1000, 1, 24*time.Hour), limiter.Spend{Take: tokens(1000)})
	mustTake(t, s, t0(), true, slow)
	fast := op(t, "e", limiter.PerSecond("l", 1000), limiter.Spend{})
	fast.Generation = 2
	now := t0().Add(86_399 * time.Millisecond) // 0.99999 millitokens
	wantBalance(t, s, now, fast, 0)
	wantBalance(t, s, now.Add(time.Millisecond), fast, 1)
}

// A replica whose clock is an hour ahead refills once for the hour. Those whose clock
// is right get the tokens that are there, and set nothing back.
func TestAClockThatIsAhead(t *testing.T) {
	db := newTable(t)
	right, ahead := newStore(t, db, nil), newStore(t, db, nil)
	defer closing(t, right, ahead)
	l := limiter.PerMinute("l", 60)
	one := op(t, "e", l, limiter.Spend{Take: tokens(60)})
	mustTake(t, right, t0(), true, one)
	mustTake(t, ahead, after(3600), true, one)
	admitted := 0
	for i := range 100 {
		o := op(t, "e", l, limiter.Spend{Take: tokens(1)})
		if ok, err := right.Take(t.Context(), after(float64(i)*10), []limiter.Op{o}); err != nil {
			t.Fatal(err)
		} else if ok {
			admitted++
		}
	}
	if admitted != 0 {
		t.Errorf("%d admitted before the clock that is ahead", admitted)
	}
	mustTake(t, right, after(3601), true, op(t, "e", l, limiter.Spend{Take: tokens(1)}))
}

// A refund to a bucket that has no item makes a whole one: its counted usage goes
// down, and the bucket is as full as before.
func TestRefundWithoutAnItem(t *testing.T) {
	db := newTable(t)
	s := newStore(t, db, nil)
	defer closing(t, s)
	give := op(t, "e", limiter.PerDay("l", 10), limiter.Spend{Refund: tokens(3)})
	mustTake(t, s, t0(), true, give)
	other := newStore(t, db, nil)
	defer closing(t, other)
	wantBalance(t, other, t0(), give, 10)
	mustTake(t, other, t0(), true, op(t, "e", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(10)}))
	mustTake(t, other, t0(), false, op(t, "e", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)}))
}

// An item whose ttl is over is a full bucket, whether it was deleted or not.
func TestExpiredItems(t *testing.T) {
	for _, swept := range []bool{false, true} {
		db := newTable(t)
		if _, err := db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName: aws.String("buckets"), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
		}); err != nil {
			t.Fatal(err)
		}
		s := newStore(t, db, nil)
		all := op(t, "e", limiter.PerMinute("l", 10), limiter.Spend{Take: tokens(10)})
		mustTake(t, s, t0(), true, all)
		later := after(4 * 3600)
		if swept {
			if n := db.Expire("buckets", later.Unix()); n != 1 {
				t.Errorf("%d items expired, want 1", n)
			}
		}
		mustTake(t, s, later, true, all)
		if n := db.Expire("buckets", later.Unix()); n != 0 {
			t.Errorf("a bucket in use expired")
		}
		mustTake(t, s, later, false, all)
		closing(t, s)
	}
}

// A charge into debt is not forgiven by the ttl.
func TestDebtOutlivesTheTTL(t *testing.T) {
	db := newTable(t)
	if _, err := db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String("buckets"), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, db, nil)
	defer closing(t, s)
	l := limiter.PerDay("l", 10)
	mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: tokens(1)}))
	mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Charge: tokens(109)}))
	if n := db.Expire("buckets", after(5*86400).Unix()); n != 0 {
		t.Error("a bucket in debt expired")
	}
	wantBalance(t, s, after(5*86400), op(t, "e", l, limiter.Spend{}), -50)
	mustTake(t, s, after(11*86400), true, op(t, "e", l, limiter.Spend{Take: tokens(10)}))
	if n := db.Expire("buckets", after(11*86400+3600).Unix()); n != 0 {
		t.Error("a bucket that is not full expired")
	}
	if n := db.Expire("buckets", after(13*86400).Unix()); n != 1 {
		t.Error("a bucket that is full again did not expire")
	}
}

// answering is a DynamoDB of which nothing is kept: every write succeeds.
type answering struct{ *dynamofake.DB }

func (answering) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return &dynamodb.PutItemOutput{}, nil
}

// Buckets that pass through do not stay in memory.
func TestIdleBucketsLeaveMemory(t *testing.T) {
	const most = rememberedBuckets
	db := newTable(t)
	s := newStore(t, answering{db}, func(cfg *dynamo.Config) { cfg.MaxLanes = most })
	defer closing(t, s)
	o := op(t, "e", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)})
	bytes := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	pass := func(from, to int) {
		for i := from; i < to; i++ {
			o.Bucket.Entity = fmt.Sprint("key/", i)
			mustTake(t, s, t0(), true, o)
		}
	}
	pass(0, 2*most)
	before := bytes()
	pass(2*most, 6*most)
	grown := int64(bytes()) - int64(before)
	if got := s.Stats().Lanes; got > most {
		t.Errorf("%d buckets are remembered, want at most %d", got, most)
	}
	if grown > most<<10 {
		t.Errorf("%d bytes more after %d buckets", grown, 6*most)
	}
}

// Buckets without callers are forgotten, and found again.
func TestIdleBucketsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, nil)
		defer closing(t, s)
		o := op(t, "e", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)})
		mustTake(t, s, t0(), true, o)
		time.Sleep(dynamo.DefaultIdle / 2)
		if got := s.Stats().Lanes; got != 1 {
			t.Errorf("%d buckets remembered, want 1", got)
		}
		time.Sleep(2 * dynamo.DefaultIdle) // every lane is checked once in this time
		if got := s.Stats().Lanes; got != 0 {
			t.Errorf("%d buckets remembered after more than %v", got, 2*dynamo.DefaultIdle)
		}
		mustTake(t, s, t0(), true, o)
		wantBalance(t, s, t0(), o, 8)
	})
}

// An item that is not as this program writes it is an error that names it, and is
// left alone.
func TestCorruptItems(t *testing.T) {
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	for _, tc := range []struct {
		attr    string
		value   types.AttributeValue // nil = removed
		instead string               // the attribute that is named, where that may be another
	}{
		{"at", nil, ""},
		{"at", &types.AttributeValueMemberS{Value: "1"}, ""},
		{"at", n("1.5"), ""},
		{"cv", n("7"), ""},
		{"cv", n("-7"), ""},
		{"cg", nil, ""},
		{"ttl", n("-1"), ""},
		{"b_l_v", nil, ""},
		{"b_l_v", n("1.5"), ""},
		{"b_l_cp", n("0"), ""},
		{"b_l_cp", n("20000"), "cv"},
		{"b_l_ra", n("-1"), ""},
		{"b_l_rp", n("1"), ""},
		{"b_l_rp", nil, ""},
		{"b_l_fl", n("1"), ""},
		{"b_l_tc", &types.AttributeValueMemberBOOL{Value: true}, ""},
		{"b_l_dz", n("2"), ""},
		{"b_m_v", n("1"), "b_m_cp"},
		{"b_m_cp", n("1"), "b_m_v"},
		{"b_l_xx", n("1"), ""},
		{"b_", n("1"), ""},
		{"lw3", n("1"), ""},
	} {
		t.Run(fmt.Sprintf("%s %v", tc.attr, tc.value), func(t *testing.T) {
			db := newTable(t)
			s := newStore(t, db, nil)
			o := op(t, "e", limiter.PerDay("l", 10), limiter.Spend{Take: tokens(1)})
			mustTake(t, s, t0(), true, o)
			closing(t, s)
			before := spoil(t, db, tc.attr, tc.value)
			s = newStore(t, db, nil)
			defer closing(t, s)
			for _, sp := range []limiter.Spend{{Take: tokens(1)}, {Look: true}, {Charge: 1}, {Refund: 1}} {
				ok, err := s.Take(t.Context(), t0(), []limiter.Op{op(t, "e", limiter.PerDay("l", 10), sp)})
				var corrupt *dynamo.CorruptError
				if ok || !errors.As(err, &corrupt) || !errors.Is(err, limiter.ErrInvalid) {
					t.Fatalf("%+v: got %t, %v; want a CorruptError", sp, ok, err)
				}
				if !strings.Contains(err.Error(), "BUCKET#e#r#0") || corrupt.Attribute != tc.attr && corrupt.Attribute != tc.instead {
					t.Errorf("the error does not name the item and the attribute: %v", err)
				}
			}
			if after := bucketItem(t, db); fmt.Sprint(after) != before {
				t.Errorf("the item was changed:\n%s\n%v", before, after)
			}
		})
	}
}

// bucketOf returns the key of the bucket of entity e.
func bucketOf(t *testing.T, db *dynamofake.DB) map[string]types.AttributeValue {
	t.Helper()
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("buckets"), Key: map[string]types.AttributeValue{"PK": text("_/SYSTEM#"), "SK": text("#NAMESPACE#default")},
	})
	if err != nil {
		t.Fatal(err)
	}
	id, ok := out.Item["namespace_id"].(*types.AttributeValueMemberS)
	if !ok {
		t.Fatalf("no namespace: %v", out.Item)
	}
	return map[string]types.AttributeValue{"PK": text(id.Value + "/BUCKET#e#r#0"), "SK": text("#STATE")}
}

// bucketItem returns the bucket of entity e.
func bucketItem(t *testing.T, db *dynamofake.DB) map[string]string {
	t.Helper()
	out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("buckets"), Key: bucketOf(t, db)})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for attr, v := range out.Item {
		texts[attr] = fmt.Sprintf("%#v", v)
		if n, ok := v.(*types.AttributeValueMemberN); ok {
			texts[attr] = n.Value
		}
	}
	return texts
}

// spoil changes an attribute of the bucket of entity e and returns the item.
func spoil(t *testing.T, db *dynamofake.DB, attr string, value types.AttributeValue) string {
	t.Helper()
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String("buckets"), Key: bucketOf(t, db), UpdateExpression: aws.String("REMOVE #a"), ExpressionAttributeNames: map[string]string{"#a": attr},
	}
	if value != nil {
		in.UpdateExpression, in.ExpressionAttributeValues = aws.String("SET #a = :v"), map[string]types.AttributeValue{":v": value}
	}
	if _, err := db.UpdateItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(bucketItem(t, db))
}
