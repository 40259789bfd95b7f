package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func markOf(id, owner string) limiter.Mark {
	return limiter.Mark{Namespace: "default", ID: id, Owner: owner, Expires: after(600)}
}

// wantWon settles and requires the answer.
func wantWon(t *testing.T, s limiter.Store, want bool, m limiter.Mark) {
	t.Helper()
	if got, err := s.Settle(t.Context(), t0(), m); err != nil || got != want {
		t.Errorf("Settle of %q by %q: got %t, %v; want %t", m.ID, m.Owner, got, err, want)
	}
}

// wantNotSettled requires an error, and that the settlement is not won.
func wantNotSettled(t *testing.T, s limiter.Store, m limiter.Mark, want error) {
	t.Helper()
	if won, err := s.Settle(t.Context(), t0(), m); won || !errors.Is(err, want) {
		t.Errorf("Settle of %q by %q: got %t, %v; want %v", m.ID, m.Owner, won, err, want)
	}
}

// settling returns a store on a table in memory, with its namespace open.
func settling(t *testing.T, change func(*dynamo.Config)) (*dynamofake.DB, *dynamo.Store) {
	t.Helper()
	db := newTable(t)
	s := newStore(t, db, change)
	wantWon(t, s, true, markOf("first", "a"))
	return db, s
}

// Every fault that can be put right is: the same owner wins, in that many writes, and
// no other.
func TestSettlementsSurviveFaults(t *testing.T) {
	type kinds = []dynamofake.Kind
	for _, tc := range []struct {
		name   string
		faults []dynamofake.Kind
		puts   int
	}{
		{"none", nil, 1},
		{"throttled", kinds{dynamofake.Throttle, dynamofake.Throttle, dynamofake.Conflict}, 4},
		{"an error before it was applied", kinds{dynamofake.ServerError}, 2},
		{"an error after it was applied", kinds{dynamofake.AppliedError}, 2},
		{"the reply is lost", kinds{dynamofake.LoseReply}, 2},
		{"the replies are lost, and it is throttled", kinds{dynamofake.LoseReply, dynamofake.Throttle, dynamofake.LoseReply}, 4},
		{"the reply takes too long", kinds{dynamofake.HoldReply}, 2},
		{"applied twice", kinds{dynamofake.Duplicate}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, s := settling(t, func(cfg *dynamo.Config) { cfg.Attempt = 100 * time.Millisecond })
				defer closing(t, s)
				steps := make([]dynamofake.Step, len(tc.faults))
				for i, k := range tc.faults {
					steps[i] = dynamofake.Step{Op: "PutItem", Fault: dynamofake.Fault{Kind: k}}
				}
				db.SetPlan(dynamofake.Script(steps...))
				wantCalls(t, calls(db, func() { wantWon(t, s, true, markOf("r", "a")) }), map[string]int{"PutItem": tc.puts})
				wantCalls(t, calls(db, func() { wantWon(t, s, false, markOf("r", "b")) }), map[string]int{"PutItem": 1})
				wantWon(t, s, true, markOf("r", "a"))
			})
		})
	}
}

// A fault that cannot be put right is an error that states the outcome of the mark:
// one that is certainly not there leaves the reservation to others.
func TestSettlementsThatFail(t *testing.T) {
	refused := func(code string) dynamofake.Fault {
		return dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: code, Message: "no"}}
	}
	for _, tc := range []struct {
		name   string
		first  dynamofake.Kind // of the first write
		fault  dynamofake.Fault
		want   error
		marked bool
	}{
		{"no permission", dynamofake.None, refused("AccessDeniedException"), dynamo.ErrDenied, false},
		{"refused", dynamofake.None, refused("ValidationException"), limiter.ErrInvalid, false},
		{"throttled for long", dynamofake.None, dynamofake.Fault{Kind: dynamofake.Throttle}, limiter.ErrUnavailable, false},
		{"errors for long", dynamofake.None, dynamofake.Fault{Kind: dynamofake.ServerError}, limiter.ErrUncertain, false},
		{"replies are lost for long", dynamofake.None, dynamofake.Fault{Kind: dynamofake.LoseReply}, limiter.ErrUncertain, true},
		{"no permission after a lost reply", dynamofake.LoseReply, refused("AccessDeniedException"), limiter.ErrUncertain, true},
		{"throttled after a lost reply", dynamofake.LoseReply, dynamofake.Fault{Kind: dynamofake.Throttle}, limiter.ErrUncertain, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, s := settling(t, func(cfg *dynamo.Config) { cfg.Budget = time.Second })
				defer closing(t, s)
				puts := 0
				db.SetPlan(func(dynamofake.Call) dynamofake.Fault {
					puts++
					if puts == 1 && tc.first != dynamofake.None {
						return dynamofake.Fault{Kind: tc.first}
					}
					return tc.fault
				})
				began := time.Now()
				wantNotSettled(t, s, markOf("r", "a"), tc.want)
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v, of a budget of a second", took)
				}
				db.SetPlan(nil)
				time.Sleep(10 * time.Second) // until calls are tried again
				wantWon(t, s, !tc.marked, markOf("r", "b"))
				wantWon(t, s, tc.marked, markOf("r", "a"))
			})
		})
	}
}

// A caller that leaves, and a store that is closed, end a settlement under way: its
// outcome is unknown, and the same owner finds it.
func TestSettlementsThatAreLeft(t *testing.T) {
	for _, by := range []string{"the caller", "Close"} {
		t.Run(by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, s := settling(t, nil)
				other := newStore(t, db, nil)
				defer closing(t, s, other)
				db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "PutItem", Fault: dynamofake.Fault{Kind: dynamofake.HoldReply}}))
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				done := make(chan error)
				go func() {
					_, err := s.Settle(ctx, t0(), markOf("r", "a"))
					done <- err
				}()
				synctest.Wait()
				if by == "the caller" {
					leave()
				} else {
					given, up := context.WithCancel(t.Context())
					up()
					if err := s.Close(given); !errors.Is(err, context.Canceled) {
						t.Errorf("Close: got %v, want %v", err, context.Canceled)
					}
				}
				if err := <-done; !errors.Is(err, limiter.ErrUncertain) || !errors.Is(err, context.Canceled) {
					t.Errorf("Settle: got %v, want %v by %v", err, limiter.ErrUncertain, context.Canceled)
				}
				wantWon(t, other, false, markOf("r", "b"))
				wantWon(t, other, true, markOf("r", "a"))
			})
		})
	}
}

// cable is a way to DynamoDB that can be cut.
type cable struct{ cut atomic.Bool }

// RoundTrip implements http.RoundTripper.
func (c *cable) RoundTrip(request *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return http.DefaultTransport.RoundTrip(request)
}

// On DynamoDB Local: a lost reply is found out, and a caller that does not reach it
// settles nothing.
func TestSettlementsOverABadLine(t *testing.T) {
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	if err := dynamo.CreateTable(t.Context(), server.Client(t), table); err != nil {
		t.Fatal(err)
	}
	proxy, line := dynamotest.NewProxy(t, server.URL, nil), &cable{}
	s := newStore(t, dynamotest.NewClient(proxy.URL, line), func(cfg *dynamo.Config) { cfg.Table = table })
	defer closing(t, s)
	proxy.SetPlan(dynamofake.Script(dynamofake.Step{Op: "PutItem", Fault: dynamofake.Fault{Kind: dynamofake.LoseReply}}))
	wantWon(t, s, true, markOf("r1", "a\xff"))
	wantWon(t, s, false, markOf("r1", "b"))
	proxy.Require(t, dynamofake.LoseReply)
	line.cut.Store(true)
	wantNotSettled(t, s, markOf("r2", "a"), limiter.ErrUnavailable)
	line.cut.Store(false)
	wantWon(t, s, true, markOf("r2", "b"))
}

// Two replicas that settle the same reservation at the same moment, a thousand
// times: one wins each.
func TestTwoReplicasSettleOnce(t *testing.T) {
	const reservations = 1000
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	if err := dynamo.CreateTable(t.Context(), server.Client(t), table); err != nil {
		t.Fatal(err)
	}
	replicas := make([]*dynamo.Store, 2)
	for i := range replicas {
		replicas[i] = newStore(t, server.Client(t), func(cfg *dynamo.Config) { cfg.Table = table })
	}
	defer closing(t, replicas...)
	var wins [2]atomic.Int64
	for r := range reservations {
		var won atomic.Int64
		var g errgroup.Group
		for i, s := range replicas {
			g.Go(func() error {
				ok, err := s.Settle(t.Context(), t0(), markOf(fmt.Sprint("r", r), fmt.Sprint("replica", i)))
				if ok {
					won.Add(1)
					wins[i].Add(1)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil || won.Load() != 1 {
			t.Fatalf("reservation %d: %d won, %v; want 1", r, won.Load(), err)
		}
	}
	t.Logf("%d and %d of %d won", wins[0].Load(), wins[1].Load(), reservations)
	if wins[0].Load() == 0 || wins[1].Load() == 0 {
		t.Error("one replica won all: the case shows nothing")
	}
}

// PutItem is UpdateItem for puts.
func (m metered) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	return m.Client.PutItem(ctx, in, opts...)
}

// A settlement is one PutItem of one write unit, the indexes included, with the
// longest ids and owners that there are.
func TestASettlementIsOneWriteUnit(t *testing.T) {
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	recorder := dynamotest.NewRecorder(nil)
	client := metered{dynamotest.NewClient(server.URL, apart{recorder})}
	if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, client, func(cfg *dynamo.Config) { cfg.Table = table })
	defer closing(t, s)
	wantWon(t, s, true, markOf("first", "a"))
	for _, fill := range []string{"r", "\xff", "#"} {
		recorder.Take()
		wantWon(t, s, true, markOf(strings.Repeat(fill, limiter.MaxMarkLength), strings.Repeat(fill, limiter.MaxMarkLength)))
		calls := recorder.Take()
		if len(calls) != 1 || calls[0].Op != "PutItem" || len(calls[0].Consumed) != 1 {
			t.Fatalf("%+v, want one PutItem", calls)
		}
		if got := calls[0].Consumed[0]; got.CapacityUnits != 1 || len(got.GlobalSecondaryIndexes) > 0 {
			t.Errorf("consumed %+v, want 1 unit and none of an index", got)
		}
	}
	wantWon(t, s, false, markOf(strings.Repeat("r", limiter.MaxMarkLength), "b"))
	recorder.Want(t, "PutItem")
}

// markItemKey returns the key of a mark in the default namespace.
func markItemKey(t *testing.T, db *dynamofake.DB, id string) map[string]types.AttributeValue {
	t.Helper()
	k := bucketOf(t, db)
	ns, _, _ := strings.Cut(k["PK"].(*types.AttributeValueMemberS).Value, "/")
	return map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: ns + "/SETTLED#" + id}, "SK": &types.AttributeValueMemberS{Value: "#MARK"},
	}
}

// A mark has its owner and its expiry, and no attribute of an index. It is deleted no
// sooner than two hours after its expiry, by DynamoDB's clock, and one of a very far
// expiry never.
func TestItemOfAMark(t *testing.T) {
	db, s := settling(t, nil)
	defer closing(t, s)
	for id, expires := range map[string]time.Time{"soon": after(600.5), "in 9999": time.Date(9999, 12, 31, 20, 59, 58, 0, time.UTC), "later": time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)} {
		m := markOf(id, "a")
		m.Expires = expires
		wantWon(t, s, true, m)
		out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("buckets"), Key: markItemKey(t, db, id)})
		if err != nil {
			t.Fatal(err)
		}
		want := markItemKey(t, db, id)
		want["owner"] = &types.AttributeValueMemberS{Value: "a"}
		if id != "later" {
			ttl := expires.Add(3*time.Hour).Unix() + 1
			want["ttl"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(ttl, 10)}
		}
		if diff := cmp.Diff(want, out.Item, cmp.AllowUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

// A purge of a namespace does not let reservations be settled again.
func TestMarksOutliveAPurge(t *testing.T) {
	_, s := settling(t, nil)
	defer closing(t, s)
	if _, err := s.Edit(t.Context(), t0(), "default", limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: limiter.DeleteNamespace}); err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(t.Context(), t0(), "default", nil); err != nil {
		t.Fatal(err)
	}
	wantWon(t, s, false, markOf("first", "b"))
}

// A mark that is not as this program writes it settles nothing, is named, and stays.
func TestCorruptMark(t *testing.T) {
	for name, value := range map[string]types.AttributeValue{
		"missing": nil, "a number": &types.AttributeValueMemberN{Value: "1"},
		"empty": &types.AttributeValueMemberS{Value: ""}, "too long": &types.AttributeValueMemberS{Value: strings.Repeat("a", limiter.MaxMarkLength+1)},
	} {
		t.Run(name, func(t *testing.T) {
			db, s := settling(t, nil)
			defer closing(t, s)
			key := markItemKey(t, db, "first")
			corrupt(t, db, key, "owner", value)
			before := itemAt(t, db, key)
			for _, owner := range []string{"a", "b"} {
				won, err := s.Settle(t.Context(), t0(), markOf("first", owner))
				if bad, ok := errors.AsType[*dynamo.CorruptError](err); won || !ok || bad.Attribute != "owner" || !strings.Contains(bad.Key, "/SETTLED#first") {
					t.Errorf("by %s: got %t, %v; want an error that names the item and owner", owner, won, err)
				}
			}
			if diff := cmp.Diff(before, itemAt(t, db, key)); diff != "" {
				t.Errorf("the item was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// Replicas share a secret, through faults as well. One that is not as this program
// writes it is an error that does not contain it.
func TestSecretsInATable(t *testing.T) {
	db := newTable(t)
	a, b := newStore(t, db, nil), newStore(t, db, nil)
	defer closing(t, a, b)
	first, second := bytes.Repeat([]byte("1\xff"), 16), bytes.Repeat([]byte("2\xff"), 16)
	db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "PutItem", Fault: dynamofake.Fault{Kind: dynamofake.LoseReply}}, dynamofake.Step{Op: "PutItem", Fault: dynamofake.Fault{Kind: dynamofake.Throttle}}))
	for _, call := range []struct {
		store     *dynamo.Store
		candidate []byte
	}{{a, first}, {b, second}, {a, second}} {
		if got, err := call.store.Secret(t.Context(), "reservations", call.candidate); err != nil || !bytes.Equal(got, first) {
			t.Errorf("got %q, %v; want the first", got, err)
		}
	}
	key := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "_/SECRET#reservations"}, "SK": &types.AttributeValueMemberS{Value: "#SECRET"}}
	for _, value := range []types.AttributeValue{
		&types.AttributeValueMemberS{Value: "hush, hush, hush, hush"}, &types.AttributeValueMemberB{Value: []byte("hush")}, &types.AttributeValueMemberB{Value: bytes.Repeat([]byte("hush"), 72)}, nil,
	} {
		corrupt(t, db, key, "sealed", value)
		got, err := b.Secret(t.Context(), "reservations", second)
		if bad, ok := errors.AsType[*dynamo.CorruptError](err); got != nil || !ok || bad.Attribute != "sealed" || !strings.Contains(bad.Key, "_/SECRET#reservations") || strings.Contains(err.Error(), "hush") {
			t.Errorf("got %q, %v; want an error that names the item and secret, and does not tell it", got, err)
		}
	}
}
