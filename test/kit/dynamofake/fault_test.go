package dynamofake_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// counter is a table with one number that calls raise by one.
type counter struct {
	*dynamofake.DB
	table *string
}

func newCounter(t *testing.T) counter {
	t.Helper()
	c := counter{dynamofake.New(), aws.String("counter")}
	if _, err := c.CreateTable(t.Context(), tableInput(c.table)); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c counter) raise(ctx context.Context) error {
	_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: c.table, Key: keyOf("p", "s"), UpdateExpression: aws.String("ADD #n :one"),
		ExpressionAttributeNames: map[string]string{"#n": "n"}, ExpressionAttributeValues: item{":one": num("1")},
	})
	return err
}

// count is the number, "" when there is none.
func (c counter) count(t *testing.T) string {
	t.Helper()
	out, err := c.GetItem(context.WithoutCancel(t.Context()), &dynamodb.GetItemInput{TableName: c.table, Key: keyOf("p", "s")})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := out.Item["n"].(*types.AttributeValueMemberN)
	if n == nil {
		return ""
	}
	return n.Value
}

func TestFaults(t *testing.T) {
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
	for _, tt := range []struct {
		fault  dynamofake.Fault
		code   string
		status int
		count  string // after one call
	}{
		{dynamofake.Fault{}, "", 0, "1"},
		{dynamofake.Fault{Kind: dynamofake.Throttle}, "ProvisionedThroughputExceededException", 400, ""},
		{dynamofake.Fault{Kind: dynamofake.Conflict}, "TransactionConflictException", 400, ""},
		{dynamofake.Fault{Kind: dynamofake.ServerError}, "InternalServerError", 500, ""},
		{dynamofake.Fault{Kind: dynamofake.Fail, Err: denied}, "AccessDeniedException", 400, ""},
		{dynamofake.Fault{Kind: dynamofake.AppliedError}, "InternalServerError", 500, "1"},
		{dynamofake.Fault{Kind: dynamofake.Duplicate}, "", 0, "2"},
		{dynamofake.Fault{Kind: dynamofake.Partial}, "", 0, "1"},
	} {
		t.Run(tt.fault.Kind.String(), func(t *testing.T) {
			c := newCounter(t)
			c.SetPlan(dynamofake.Script(dynamofake.Step{Op: "UpdateItem", Fault: tt.fault}))
			err := c.raise(t.Context())
			code, status := "", 0
			if api, ok := errors.AsType[smithy.APIError](err); ok {
				code = api.ErrorCode()
			}
			if reply, ok := errors.AsType[*awshttp.ResponseError](err); ok {
				status = reply.HTTPStatusCode()
			}
			if code != tt.code || status != tt.status {
				t.Errorf("got %q with status %d, want %q with %d: %v", code, status, tt.code, tt.status, err)
			}
			if got := c.count(t); got != tt.count {
				t.Errorf("the number is %q, want %q", got, tt.count)
			}
			if err := c.raise(t.Context()); err != nil {
				t.Errorf("after the script: %v", err)
			}
		})
	}
}

func TestLostReply(t *testing.T) {
	c := newCounter(t)
	c.SetPlan(dynamofake.Script(dynamofake.Step{Fault: dynamofake.Fault{Kind: dynamofake.LoseReply}}))
	if err := c.raise(t.Context()); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset connection", err)
	}
	if got := c.count(t); got != "1" {
		t.Errorf("the number is %q, want 1: the write was applied", got)
	}
	want := map[dynamofake.Kind]int{dynamofake.LoseReply: 1}
	if diff := gocmp.Diff(want, c.Faults()); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// A request that is held is applied on release, whether or not its caller waits.
func TestHeldRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(t)
		gate := dynamofake.NewGate()
		held := dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: gate}
		c.SetPlan(dynamofake.Script(dynamofake.Step{Op: "UpdateItem", Fault: held}, dynamofake.Step{Op: "UpdateItem", Fault: held}))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.raise(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		patient := make(chan error)
		go func() { patient <- c.raise(t.Context()) }()
		synctest.Wait()
		if got := c.count(t); got != "" {
			t.Errorf("the number is %q before the release", got)
		}
		gate.Release()
		if err := <-patient; err != nil {
			t.Error(err)
		}
		if got := c.count(t); got != "2" {
			t.Errorf("the number is %q after the release, want 2", got)
		}
	})
}

func TestHeldReplyAndLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(t)
		gate := dynamofake.NewGate()
		c.SetPlan(dynamofake.Script(
			dynamofake.Step{Op: "UpdateItem", Fault: dynamofake.Fault{Kind: dynamofake.HoldReply, Gate: gate}},
			dynamofake.Step{Op: "UpdateItem", Fault: dynamofake.Fault{Latency: time.Minute}},
			dynamofake.Step{Op: "UpdateItem", Fault: dynamofake.Fault{Latency: time.Minute}},
		))
		done := make(chan error, 1)
		go func() { done <- c.raise(t.Context()) }()
		<-gate.Arrived()
		if got := c.count(t); got != "1" {
			t.Errorf("the number is %q while the reply is held, want 1", got)
		}
		gate.Release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		start := time.Now()
		if err := c.raise(t.Context()); err != nil || time.Since(start) != time.Minute {
			t.Errorf("got %v after %v, want success after 1m", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.raise(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		if got := c.count(t); got != "3" {
			t.Errorf("the number is %q, want 3: a late reply does not undo the write", got)
		}
	})
}

// A duplicate arrives later, when others have written.
func TestDuplicate(t *testing.T) {
	c := newCounter(t)
	gate := dynamofake.NewGate()
	c.SetPlan(dynamofake.Script(dynamofake.Step{Op: "UpdateItem", Fault: dynamofake.Fault{Kind: dynamofake.Duplicate, Gate: gate}}))
	for range 2 {
		if err := c.raise(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := c.count(t)
	gate.Release()
	gate.Release()
	if after := c.count(t); before != "2" || after != "3" {
		t.Errorf("got %s, then %s; want 2, then 3", before, after)
	}
}

func TestPartialBatches(t *testing.T) {
	c := newCounter(t)
	ctx := t.Context()
	keys := []item{keyOf("p", "a"), keyOf("p", "b"), keyOf("p", "c")}
	puts := make([]types.WriteRequest, len(keys))
	for i, key := range keys {
		puts[i].PutRequest = &types.PutRequest{Item: key}
	}
	partial := dynamofake.Fault{Kind: dynamofake.Partial}
	c.SetPlan(dynamofake.Script(dynamofake.Step{Fault: partial}, dynamofake.Step{Fault: partial}, dynamofake.Step{Fault: partial}))
	written, err := c.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{*c.table: puts}})
	if err != nil || len(written.UnprocessedItems[*c.table]) != 1 {
		t.Fatalf("got %+v, %v; want one of three unprocessed", written, err)
	}
	if written, err = c.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: written.UnprocessedItems}); err != nil || len(written.UnprocessedItems) != 0 {
		t.Fatalf("got %+v, %v; a batch of one cannot be partial", written, err)
	}
	read, err := c.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*c.table: {Keys: keys, ConsistentRead: aws.Bool(true)}}})
	if err != nil || len(read.Responses[*c.table]) != 2 || len(read.UnprocessedKeys[*c.table].Keys) != 1 {
		t.Fatalf("got %+v, %v; want two of three items", read, err)
	}
	read, err = c.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: read.UnprocessedKeys})
	if err != nil || len(read.Responses[*c.table]) != 1 || len(read.UnprocessedKeys) != 0 {
		t.Fatalf("got %+v, %v; want the third item", read, err)
	}
}

// The same seed and the same calls have the same faults.
func TestRandomPlan(t *testing.T) {
	run := func(seed uint64) (faults []dynamofake.Kind) {
		c := newCounter(t)
		plan := dynamofake.Random(rand.New(rand.NewPCG(seed, 0)),
			dynamofake.Chance{Op: "UpdateItem", Percent: 30, Fault: dynamofake.Fault{Kind: dynamofake.Throttle}},
			dynamofake.Chance{Percent: 10, Fault: dynamofake.Fault{Kind: dynamofake.LoseReply}})
		c.SetPlan(func(call dynamofake.Call) dynamofake.Fault {
			f := plan(call)
			faults = append(faults, f.Kind)
			return f
		})
		for range 200 {
			_ = c.raise(t.Context()) // fails as planned
		}
		if n := c.Faults(); n[dynamofake.Throttle] == 0 || n[dynamofake.LoseReply] == 0 {
			t.Errorf("faults %v in 200 calls; want both kinds", n)
		}
		return faults
	}
	if diff := gocmp.Diff(run(1), run(1)); diff != "" {
		t.Errorf("the same seed draws other faults:\n%s", diff)
	}
	if gocmp.Equal(run(1), run(2)) {
		t.Error("another seed draws the same faults")
	}
}

// Failed conditions are billed too, and indexes only when their image changes.
func TestWriteUnits(t *testing.T) {
	c := newCounter(t)
	ctx := t.Context()
	units := func(call func() error) int64 {
		before := c.WriteUnits()
		_ = call() // may fail
		return c.WriteUnits() - before
	}
	put := func(it item, condition string) func() error {
		in := &dynamodb.PutItemInput{TableName: c.table, Item: it}
		if condition != "" {
			in.ConditionExpression, in.ExpressionAttributeNames = &condition, map[string]string{"#k": "PK"}
		}
		return func() error { _, err := c.PutItem(ctx, in); return err }
	}
	large := keyOf("p", "large")
	large["s"] = str(string(make([]byte, 1500)))
	indexed := keyOf("p", "indexed")
	indexed["GSI1PK"], indexed["GSI1SK"] = str("a"), str("b")
	transaction := func() error {
		_, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: c.table, Item: keyOf("p", "1")}}, {Put: &types.Put{TableName: c.table, Item: keyOf("p", "2")}},
		}})
		return err
	}
	for _, tt := range []struct {
		name string
		call func() error
		want int64
	}{
		{"small", func() error { return c.raise(ctx) }, 1},
		{"above a kilobyte", put(large, ""), 2},
		{"condition fails on nothing", put(keyOf("p", "none"), "attribute_exists(#k)"), 1},
		{"condition fails on a large item", put(large, "attribute_not_exists(#k)"), 2},
		{"new in an index", put(indexed, ""), 2},
		{"the same in the index", put(indexed, ""), 1},
		{"out of the index", put(keyOf("p", "indexed"), ""), 2},
		{"transaction", transaction, 4},
		{"invalid", put(item{}, ""), 0},
	} {
		if got := units(tt.call); got != tt.want {
			t.Errorf("%s: %d write units, want %d", tt.name, got, tt.want)
		}
	}
}

func TestExpire(t *testing.T) {
	c := newCounter(t)
	ctx := t.Context()
	if _, err := c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: c.table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)}}); err != nil {
		t.Fatal(err)
	}
	for sk, ttl := range map[string]types.AttributeValue{"past": num("99"), "now": num("100"), "text": str("1"), "none": nil} {
		it := keyOf("p", sk)
		if ttl != nil {
			it["ttl"] = ttl
		}
		if _, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: c.table, Item: it}); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Expire(*c.table, 100); got != 1 {
		t.Errorf("%d items expired, want 1", got)
	}
}

// A feature that the fake does not have fails with an error that is none of
// DynamoDB's.
func TestUnsupported(t *testing.T) {
	c := newCounter(t)
	for _, e := range []string{
		"n = :n", "#m.#n = :n", "#l[0] = :n", "NOT #n = :n", "#n in (:n)", "size(#s) = :n", "contains(#s, :s)", "attribute_type(#s, :s)",
		"if_not_exists(#n, :n) = :n", "list_append(#l, :l) = :l",
	} {
		names, vals := used(&e)
		_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: c.table, Item: base(), ConditionExpression: &e, ExpressionAttributeNames: names, ExpressionAttributeValues: vals})
		if _, isAPI := errors.AsType[smithy.APIError](err); isAPI || !errors.Is(err, dynamofake.ErrUnsupported) {
			t.Errorf("%s: got %v, want ErrUnsupported", e, err)
		}
	}
	for _, e := range []string{"DELETE #ss :ss", "SET #n = if_not_exists(#n, :n)", "SET #l = list_append(#l, :l)"} {
		names, vals := used(&e)
		_, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: c.table, Key: keyOf("p", "s"), UpdateExpression: &e, ExpressionAttributeNames: names, ExpressionAttributeValues: vals})
		if !errors.Is(err, dynamofake.ErrUnsupported) {
			t.Errorf("%s: got %v, want ErrUnsupported", e, err)
		}
	}
	if _, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: c.table, Key: keyOf("p", "s"), ProjectionExpression: aws.String("#n")}); !errors.Is(err, dynamofake.ErrUnsupported) {
		t.Errorf("a projection: got %v, want ErrUnsupported", err)
	}
}

// DynamoDB refuses an index key of a wrong type in an update too. It reports the
// error of one write of a transaction among its reasons. DynamoDB Local does neither.
func TestUnlikeDynamoDBLocal(t *testing.T) {
	c := newCounter(t)
	ctx := t.Context()
	_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: c.table, Key: keyOf("p", "s"), UpdateExpression: aws.String("SET #k = :n"),
		ExpressionAttributeNames: map[string]string{"#k": "GSI1PK"}, ExpressionAttributeValues: item{":n": num("1")},
	})
	if got := newOutcome(nil, err).Code; got != "ValidationException" {
		t.Errorf("a number as index key: %v", err)
	}
	_, err = c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: c.table, Item: keyOf("p", "t")}},
		{Update: &types.Update{
			TableName: c.table, Key: keyOf("p", "none"), UpdateExpression: aws.String("SET #n = #n + :n"),
			ExpressionAttributeNames: map[string]string{"#n": "n"}, ExpressionAttributeValues: item{":n": num("1")},
		}},
	}})
	want := []types.CancellationReason{{Code: aws.String("None")}, {Code: aws.String("ValidationError")}}
	if diff := gocmp.Diff(want, newOutcome(nil, err).Reasons, same); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

// A context that has ended sends nothing.
func TestNothingIsSent(t *testing.T) {
	c := newCounter(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.raise(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	if got := c.Count("UpdateItem"); got != 0 {
		t.Errorf("%d calls arrived, want none", got)
	}
}
