package dynamo_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// apart hides reads of generations from a recorder, which are no decision's: the
// store makes them from time to time for all of them.
type apart struct{ recorder *dynamotest.Recorder }

// RoundTrip implements http.RoundTripper.
func (a apart) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte("#GENERATION")) {
		return http.DefaultTransport.RoundTrip(request)
	}
	return a.recorder.RoundTrip(request)
}

// counted is a limiter over a store on DynamoDB Local, whose calls are recorded and
// can be held. In the table "child" and "orphan" have limits, and the child a parent.
type counted struct {
	*testing.T
	limiter  *limiter.Limiter
	proxy    *dynamotest.Proxy
	recorder *dynamotest.Recorder
}

func newCounted(t *testing.T) *counted {
	t.Helper()
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	if err := dynamo.CreateTable(t.Context(), server.Client(t), table); err != nil {
		t.Fatal(err)
	}
	admin := newStore(t, server.Client(t), func(cfg *dynamo.Config) { cfg.Table = table })
	defer closing(t, admin)
	if _, err := admin.PutEntity(t.Context(), t0(), "default", limiter.Entity{ID: "child", Parent: "parent", Cascade: true}); err != nil {
		t.Fatal(err)
	}
	set := limitsOf(t, limiter.PerSecond("rps", 10), limiter.PerDay("rpd", 100_000))
	if err := admin.PutLimits(t.Context(), "default", limiter.SystemLimitsRef(), limiter.Record{Limits: set}); err != nil {
		t.Fatal(err)
	}
	c := &counted{T: t, proxy: dynamotest.NewProxy(t, server.URL, nil)}
	c.recorder = dynamotest.NewRecorder(nil)
	s := newStore(t, dynamotest.NewClient(c.proxy.URL, apart{c.recorder}), func(cfg *dynamo.Config) { cfg.Table = table })
	t.Cleanup(func() { closing(t, s) })
	var err error
	if c.limiter, err = limiter.New(limiter.Config{Store: s, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	c.decide("somebody", 0, true) // opens the namespace
	c.recorder.Take()
	return c
}

// decide asks for one token of each limit of an entity, some seconds after the beginning.
func (c *counted) decide(entity string, seconds float64, want bool) {
	c.Helper()
	req := limiter.Request{Takes: []limiter.Take{{
		Entity: entity, Resource: "r", Consume: []limiter.Consumption{{Limit: "rps", Amount: tokens(1)}, {Limit: "rpd", Amount: tokens(1)}},
	}}}
	var d limiter.Decision
	if err := c.limiter.Decide(c.Context(), after(seconds), &req, &d); err != nil || d.Admitted != want || d.Policy != limiter.Unset {
		c.Errorf("%s after %v s: got %t by policy %q, %v, %v; want %t of the store", entity, seconds, d.Admitted, d.Policy, d.Unavailable, err, want)
	}
}

// The cost of decisions of all kinds: the calls, in their order, and nothing else.
func TestCallsOfDecisions(t *testing.T) {
	c := newCounted(t)
	steady := func(entity string, calls ...string) {
		t.Helper()
		for i := range 20 {
			c.decide(entity, 1+float64(i)*0.35, true)
			c.recorder.Want(t, calls...)
		}
	}
	c.decide("orphan", 0, true)
	c.recorder.Want(t, "BatchGetItem", "PutItem")
	steady("orphan", "UpdateItem")
	c.decide("child", 0, true) // its parent is learned by the first read
	c.recorder.Want(t, "BatchGetItem", "BatchGetItem", "PutItem", "PutItem")
	steady("child", "UpdateItem", "UpdateItem")
	// A limiter without the records reads them again; the lanes have the buckets.
	c.limiter.InvalidateCache()
	c.decide("child", 10, true)
	c.recorder.Want(t, "BatchGetItem", "BatchGetItem", "UpdateItem", "UpdateItem")
}

// The parent's write is under way before the child's is answered, and the other way round.
func TestChildAndParentAreWrittenAtOnce(t *testing.T) {
	c := newCounted(t)
	c.decide("child", 0, true)
	gate, sent := dynamofake.NewGate(), make(chan struct{}, 2)
	defer gate.Release()
	c.proxy.SetPlan(func(call dynamofake.Call) dynamofake.Fault {
		if call.Op != "UpdateItem" {
			return dynamofake.Fault{}
		}
		sent <- struct{}{}
		return dynamofake.Fault{Kind: dynamofake.HoldReply, Gate: gate}
	})
	c.recorder.Take()
	var g sync.WaitGroup
	g.Go(func() { c.decide("child", 1, true) })
	for i := range 2 {
		select {
		case <-sent:
		case <-time.After(30 * time.Second):
			t.Fatalf("%d of 2 writes were sent before one was answered", i)
		}
	}
	gate.Release()
	g.Wait()
	c.recorder.Want(t, "UpdateItem", "UpdateItem")
}

// A storm of denials, from the first on, is a few reads at most: none while the last state
// of the bucket is fresh.
func TestCallsOfAStorm(t *testing.T) {
	c := newCounted(t)
	for range 9 {
		c.decide("orphan", 0, true)
	}
	storm := func() []dynamotest.Recorded {
		c.recorder.Take()
		var g sync.WaitGroup
		for range 1000 {
			g.Go(func() { c.decide("orphan", 0, false) })
		}
		g.Wait()
		return c.recorder.Take()
	}
	c.decide("orphan", 0, true)
	for range 2 {
		if calls := storm(); len(calls) > 5 || slices.ContainsFunc(calls, func(r dynamotest.Recorded) bool { return r.Op != "GetItem" }) {
			t.Errorf("1000 denials at once made %d calls, want 5 reads at most: %+v", len(calls), calls)
		}
	}
}

// All requests that arrive while a write is under way go into one more.
func TestTheSecondWriteTakesAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		s := newStore(t, db, nil)
		defer closing(t, s)
		l := limiter.PerDay("l", 300)
		mustTake(t, s, t0(), true, op(t, "e", l, limiter.Spend{Take: tokens(1)}))
		gate := dynamofake.NewGate()
		db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "UpdateItem", Fault: dynamofake.Fault{Kind: dynamofake.HoldReply, Gate: gate}}))
		made := calls(db, func() {
			var g sync.WaitGroup
			for i := range 100 {
				ops := []limiter.Op{op(t, "e", l, limiter.Spend{Take: tokens(2)})}
				g.Go(func() {
					if ok, err := s.Take(t.Context(), t0(), ops); err != nil || !ok {
						t.Errorf("got %t, %v", ok, err)
					}
				})
				if i == 0 {
					<-gate.Arrived()
				}
			}
			synctest.Wait()
			gate.Release()
			g.Wait()
		})
		if got, want := fmt.Sprint(made), fmt.Sprint(map[string]int{"UpdateItem": 2}); got != want {
			t.Errorf("100 takes made %s, want %s", got, want)
		}
		wantBalance(t, s, t0(), op(t, "e", l, limiter.Spend{}), 99)
	})
}
