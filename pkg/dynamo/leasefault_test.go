package dynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// daily is a take of some tokens of a bucket that is not refilled while a test runs.
func daily(t *testing.T, capacity, n int64) limiter.Op {
	t.Helper()
	return op(t, "e", limiter.PerDay("l", capacity), limiter.Spend{Take: tokens(n)})
}

// While DynamoDB does not answer, leases are served to their end; then nothing is.
func TestLeasesAreServedInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, func(cfg *dynamo.Config) {
			cfg.Leases, cfg.Attempt, cfg.Budget = true, 10*time.Millisecond, 15*time.Millisecond
		})
		defer closing(t, s)
		o := daily(t, 1_000_000, 1)
		warm(t, s, t0(), o)
		for range 2000 {
			mustTake(t, s, t0(), true, o)
		}
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.HoldRequest} })
		began, served := time.Now(), 0
		for time.Since(began) < 6*time.Second {
			ok, err := s.Take(t.Context(), t0(), []limiter.Op{o})
			switch after := time.Since(began); {
			case ok:
				if served++; after > 5*time.Second {
					t.Fatalf("served %v after DynamoDB was last heard of", after)
				}
			case !errors.Is(err, limiter.ErrUnavailable) && !errors.Is(err, limiter.ErrUncertain):
				t.Fatalf("after %v: %v, want it to be unavailable", after, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if served < 220 {
			t.Errorf("%d were served, want most of 5 s, 20 ms apart", served)
		}
		db.SetPlan(nil)
		time.Sleep(10 * time.Second)
		mustTake(t, s, t0(), true, o)
	})
}

// What came of a write whose reply is lost the next image tells: nothing is lost, and
// nothing is given twice.
func TestLostRepliesToWritesOfLeases(t *testing.T) {
	for _, kind := range []dynamofake.Kind{dynamofake.LoseReply, dynamofake.AppliedError, dynamofake.ServerError, dynamofake.Throttle, dynamofake.Duplicate} {
		for _, every := range []int{1, 2, 3} {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				s, plain := newStore(t, db, withLeases), newStore(t, db, nil)
				defer closing(t, plain)
				const capacity = 500
				warm(t, s, t0(), daily(t, capacity, 1))
				var n atomic.Int64
				db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
					if c.Op == "UpdateItem" && n.Add(1)%int64(every) == 0 && n.Load() < 40 {
						return dynamofake.Fault{Kind: kind}
					}
					return dynamofake.Fault{}
				})
				all := daily(t, capacity, 1)
				all.Spends = []limiter.Spend{{Limit: "l"}}
				mustTake(t, plain, t0(), true, all)
				admitted := int64(0)
				for i := range 300 {
					ok, err := s.Take(t.Context(), t0(), []limiter.Op{daily(t, capacity, 1+int64(i%7/6)*5)})
					if err == nil && ok {
						admitted += 1 + int64(i%7/6)*5
					}
					if i%50 == 49 {
						time.Sleep(300 * time.Millisecond) // idle: it is given back
					}
				}
				db.SetPlan(nil)
				closing(t, s)
				wantNothingLeased(t, db)
				mustTake(t, plain, t0(), true, all)
				left := all.Spends[0].Bucket.Tokens / limiter.Milli
				if left > capacity-admitted || kind != dynamofake.LoseReply && left < capacity-admitted-30 {
					t.Errorf("%v of every write of %d: %d admitted and %d left of %d", kind, every, admitted, left, capacity)
				}
			})
		}
	}
}

// A request for more than the lease has left joins the next write, which takes back
// what is left of the lease for it; one for more than there is takes nothing.
func TestALargeRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s, plain := newStore(t, db, withLeases), newStore(t, db, nil)
		defer closing(t, plain)
		taken := warm(t, s, t0(), daily(t, 100, 1))
		mustTake(t, s, t0(), false, daily(t, 100, 101-taken))
		made := calls(db, func() { mustTake(t, s, t0(), true, daily(t, 100, 100-taken)) })
		wantCalls(t, made, map[string]int{"UpdateItem": 1})
		mustTake(t, s, t0(), false, daily(t, 100, 1))
		closing(t, s)
		wantNothingLeased(t, db)
		wantBalance(t, plain, t0(), daily(t, 100, 1), 0)
	})
}

// While a renewal is under way the lease is served on.
func TestARenewalIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, withLeases)
		defer closing(t, s)
		o := daily(t, 1_000_000, 1)
		warm(t, s, t0(), o)
		for range 500 {
			mustTake(t, s, t0(), true, o)
		}
		synctest.Wait()
		gate := dynamofake.NewGate()
		var held atomic.Int64
		db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
			if c.Op != "UpdateItem" {
				return dynamofake.Fault{}
			}
			held.Add(1)
			return dynamofake.Fault{Kind: dynamofake.HoldReply, Gate: gate}
		})
		began, served := time.Now(), 0
		for held.Load() == 0 {
			mustTake(t, s, t0(), true, o)
			synctest.Wait()
		}
		for range 10 {
			mustTake(t, s, t0(), true, o)
			served++
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("%d decisions beside a renewal waited for %v", served, waited)
		}
		gate.Release()
	})
}

// What is settled, refunded and charged goes through the lease, as far as it has a
// place for it.
func TestSettlementsGoThroughTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s, plain := newStore(t, db, withLeases), newStore(t, db, nil)
		defer closing(t, plain)
		o := daily(t, 10_000, 1)
		taken := warm(t, s, t0(), o)
		for range 20 {
			mustTake(t, s, t0(), true, o)
		}
		book := func(want map[string]int, sp limiter.Spend) {
			t.Helper()
			b := op(t, "e", limiter.PerDay("l", 10_000), sp)
			b.Shard = 1
			synctest.Wait() // renewals
			wantCalls(t, calls(db, func() { mustTake(t, s, t0(), true, b) }), want)
		}
		book(map[string]int{}, limiter.Spend{Charge: tokens(3)})
		book(map[string]int{}, limiter.Spend{Refund: tokens(2)})
		book(map[string]int{}, limiter.Spend{Take: tokens(2), Refund: tokens(1)})
		book(map[string]int{"UpdateItem": 1}, limiter.Spend{Charge: tokens(9000)})
		book(map[string]int{"UpdateItem": 1}, limiter.Spend{Refund: tokens(9000)})
		closing(t, s)
		wantNothingLeased(t, db)
		wantBalance(t, plain, t0(), o, 10_000-taken-20-3+2-1)
		if got, want := bucketItem(t, db)["b_l_tc"], taken+20+3-2+1; got != strconv.FormatInt(tokens(want), 10) {
			t.Errorf("usage: %s millitokens, want %d tokens", got, want)
		}
	})
}

// recording is a table that records what is sent to it.
type recording struct {
	*dynamofake.DB
	sent []string
}

func (r *recording) note(what string, in any) {
	b, _ := json.Marshal(in) // never fails
	r.sent = append(r.sent, what+string(b))
}

func (r *recording) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.note("UpdateItem", in)
	return r.DB.UpdateItem(ctx, in, opts...)
}

func (r *recording) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	r.note("PutItem", in)
	return r.DB.PutItem(ctx, in, opts...)
}

func (r *recording) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	r.note("GetItem", in)
	return r.DB.GetItem(ctx, in, opts...)
}

// What differs from one table and process to the next: the process's name, and the slot
// that goes by it; and the parts of the indexes, which go by the namespace's id.
var (
	partName  = regexp.MustCompile(`(ns/RESOURCE#r|ns)#\d+`)             //nolint:gochecknoglobals // a constant
	writeName = regexp.MustCompile(`[A-Z2-7]{9}:([0-9a-z]+)[0-9a-z]{2}`) //nolint:gochecknoglobals // a constant
	slotName  = regexp.MustCompile(`(l[wc])[0-7]`)                       //nolint:gochecknoglobals // a constant
)

// namesOf returns the id of the namespace.
func namesOf(t *testing.T, db *dynamofake.DB) string {
	t.Helper()
	pk, _ := bucketOf(t, db)["PK"].(*types.AttributeValueMemberS)
	return strings.TrimSuffix(pk.Value, "/BUCKET#e#r#0")
}

// Where the policy is none, a store that could lease sends what one that could not sends,
// to the letter.
func TestWithoutLeasesNothingChanges(t *testing.T) {
	script := func(leases bool, policy limiter.LeasePolicy) []string {
		var sent []string
		synctest.Test(t, func(t *testing.T) {
			db := &recording{DB: newTable(t)}
			s := newStore(t, db, func(cfg *dynamo.Config) { cfg.Leases = leases })
			defer closing(t, s)
			set := limitsOf(t, limiter.Custom("a", 100, 7, time.Second), limiter.PerMinute("b", 1000))
			lower := limitsOf(t, limiter.Custom("a", 50, 7, time.Second))
			for i := range 200 {
				o := limiter.Op{Bucket: limiter.BucketKey{Namespace: "default", Entity: "e", Resource: "r"}, Limits: set, Generation: 1, Lease: policy}
				switch o.Spends = []limiter.Spend{{Limit: "a", Take: tokens(int64(i % 5))}, {Limit: "b", Take: tokens(3)}}; {
				case i%11 == 0:
					o.Spends[0] = limiter.Spend{Limit: "a", Charge: tokens(30), Refund: tokens(int64(i % 3))}
				case i%13 == 0:
					o.Spends[0] = limiter.Spend{Limit: "a", Refund: tokens(4)}
				case i%17 == 0:
					o.Spends[0] = limiter.Spend{Limit: "a", Look: true}
				case i > 150:
					o.Limits, o.Generation, o.Spends = lower, 2, o.Spends[:1]
				}
				if _, err := s.Take(t.Context(), after(float64(i)*0.013), []limiter.Op{o}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(i%3) * time.Millisecond)
			}
			sent = db.sent
			names := namesOf(t, db.DB)
			for i := range sent {
				sent[i] = partName.ReplaceAllString(strings.ReplaceAll(sent[i], names, "ns"), "$1#n")
				sent[i] = slotName.ReplaceAllString(writeName.ReplaceAllString(sent[i], "process:$1"), "$1")
			}
		})
		return sent
	}
	want, got := script(false, limiter.LeasePolicy{}), script(true, limiter.LeasePolicy{None: true})
	if len(want) < 150 {
		t.Fatalf("%d calls in all, want one for most decisions", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("where the policy is none (-where the store does not lease +got):\n%.2000s", diff)
	}
}
