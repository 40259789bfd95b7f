package dynamotest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

type item = map[string]types.AttributeValue

func key(pk string) item { return item{"PK": &types.AttributeValueMemberS{Value: pk}} }

// counter is a table with one number that calls raise by one, behind a proxy.
type counter struct {
	proxy  *dynamotest.Proxy
	client *dynamodb.Client // through the proxy
	direct *dynamodb.Client
	table  *string
}

func newCounter(t *testing.T, steps ...dynamofake.Step) *counter {
	t.Helper()
	server := dynamotest.Start(t)
	c := &counter{direct: server.Client(t), table: aws.String(dynamotest.TableName(t))}
	if _, err := c.direct.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: c.table, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"), AttributeType: types.ScalarAttributeTypeS}},
	}); err != nil {
		t.Fatal(err)
	}
	c.proxy = dynamotest.NewProxy(t, server.URL, dynamofake.Script(steps...))
	c.client = dynamotest.NewClient(c.proxy.URL, nil)
	return c
}

func (c *counter) raise(ctx context.Context) error {
	_, err := c.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: c.table, Key: key("p"), UpdateExpression: aws.String("ADD #n :one"),
		ExpressionAttributeNames: map[string]string{"#n": "n"}, ExpressionAttributeValues: item{":one": &types.AttributeValueMemberN{Value: "1"}},
	})
	return err
}

// want demands that the number is this, "" for none.
func (c *counter) want(t *testing.T, want string) {
	t.Helper()
	out, err := c.direct.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: c.table, Key: key("p"), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	if n, ok := out.Item["n"].(*types.AttributeValueMemberN); ok {
		got = n.Value
	}
	if got != want {
		t.Errorf("the number is %q, want %q", got, want)
	}
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		fault  dynamofake.Fault
		code   string
		status int
		count  string // after one call
	}{
		{dynamofake.Fault{Kind: dynamofake.Throttle}, "ProvisionedThroughputExceededException", 400, ""},
		{dynamofake.Fault{Kind: dynamofake.Conflict}, "TransactionConflictException", 400, ""},
		{dynamofake.Fault{Kind: dynamofake.ServerError}, "InternalServerError", 500, ""},
		{dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "AccessDeniedException"}}, "AccessDeniedException", 400, ""},
		{dynamofake.Fault{Kind: dynamofake.AppliedError}, "InternalServerError", 500, "1"},
		{dynamofake.Fault{Kind: dynamofake.LoseReply}, "", 0, "1"},
		{dynamofake.Fault{Kind: dynamofake.Duplicate}, "none", 0, "2"},
	} {
		t.Run(tt.fault.Kind.String(), func(t *testing.T) {
			c := newCounter(t, dynamofake.Step{Op: "UpdateItem", Fault: tt.fault})
			err := c.raise(t.Context())
			code, status := "", 0
			if err == nil {
				code = "none"
			}
			if api, ok := errors.AsType[smithy.APIError](err); ok {
				code = api.ErrorCode()
			}
			if reply, ok := errors.AsType[*awshttp.ResponseError](err); ok {
				status = reply.HTTPStatusCode()
			}
			if code != tt.code || status != tt.status {
				t.Errorf("got %q with status %d, want %q with %d: %v", code, status, tt.code, tt.status, err)
			}
			c.want(t, tt.count)
			c.proxy.Require(t, tt.fault.Kind)
			if err := c.raise(t.Context()); err != nil {
				t.Errorf("after the script: %v", err)
			}
			if diff := cmp.Diff(map[dynamofake.Kind]int{tt.fault.Kind: 1}, c.proxy.Faults()); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// The types of the SDK are the same as from DynamoDB.
func TestFaultsHaveTheirTypes(t *testing.T) {
	c := newCounter(t, dynamofake.Step{Fault: dynamofake.Fault{Kind: dynamofake.Throttle}}, dynamofake.Step{Fault: dynamofake.Fault{Kind: dynamofake.Conflict}}, dynamofake.Step{Fault: dynamofake.Fault{Kind: dynamofake.Conflict}})
	if _, ok := errors.AsType[*types.ProvisionedThroughputExceededException](c.raise(t.Context())); !ok {
		t.Error("a throttle has another type")
	}
	if _, ok := errors.AsType[*types.TransactionConflictException](c.raise(t.Context())); !ok {
		t.Error("a conflict has another type")
	}
	_, err := c.client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: c.table, Item: key("p")}}}})
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || len(cancelled.CancellationReasons) != 1 || aws.ToString(cancelled.CancellationReasons[0].Code) != "TransactionConflict" {
		t.Errorf("a conflict of a transaction is %v", err)
	}
}

// The caller gives up, and the request is applied all the same.
func TestAppliedAfterTheDeadline(t *testing.T) {
	c := newCounter(t, dynamofake.Step{Fault: dynamofake.Fault{Kind: dynamofake.HoldRequest}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.raise(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
	c.proxy.Settle()
	c.want(t, "1")
}

func TestGates(t *testing.T) {
	requests, replies := dynamofake.NewGate(), dynamofake.NewGate()
	c := newCounter(t, dynamofake.Step{Fault: dynamofake.Fault{Kind: dynamofake.HoldRequest, Gate: requests}},
		dynamofake.Step{Fault: dynamofake.Fault{Kind: dynamofake.HoldReply, Gate: replies}}, dynamofake.Step{Fault: dynamofake.Fault{Latency: time.Millisecond}})
	done := make(chan error, 2)
	go func() { done <- c.raise(t.Context()) }()
	<-requests.Arrived()
	c.want(t, "")
	go func() { done <- c.raise(t.Context()) }()
	<-replies.Arrived()
	c.want(t, "1")
	requests.Release()
	replies.Release()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := c.raise(t.Context()); err != nil {
		t.Error(err)
	}
	c.want(t, "3")
}

// A caller whose reply is held gives up; its write stays.
func TestHeldReplyIsLost(t *testing.T) {
	c := newCounter(t, dynamofake.Step{Fault: dynamofake.Fault{Kind: dynamofake.HoldReply}}, dynamofake.Step{Fault: dynamofake.Fault{Latency: time.Minute}})
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := c.raise(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		cancel()
	}
	c.proxy.Settle()
	c.want(t, "2")
}

func TestPartialBatches(t *testing.T) {
	partial := dynamofake.Fault{Kind: dynamofake.Partial}
	c := newCounter(t, dynamofake.Step{Fault: partial}, dynamofake.Step{Fault: partial}, dynamofake.Step{Fault: partial}, dynamofake.Step{Op: "UpdateItem", Fault: partial})
	ctx := t.Context()
	keys := []item{key("a"), key("b"), key("c")}
	puts := make([]types.WriteRequest, len(keys))
	for i, k := range keys {
		puts[i].PutRequest = &types.PutRequest{Item: k}
	}
	written, err := c.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{*c.table: puts}})
	if err != nil || len(written.UnprocessedItems[*c.table]) != 1 {
		t.Fatalf("got %+v, %v; want one of three unprocessed", written, err)
	}
	if written, err = c.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: written.UnprocessedItems}); err != nil || len(written.UnprocessedItems) != 0 {
		t.Fatalf("got %+v, %v; a batch of one cannot be partial", written, err)
	}
	read, err := c.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*c.table: {Keys: keys, ConsistentRead: aws.Bool(true)}}})
	if err != nil || len(read.Responses[*c.table]) != 2 || len(read.UnprocessedKeys[*c.table].Keys) != 1 || !aws.ToBool(read.UnprocessedKeys[*c.table].ConsistentRead) {
		t.Fatalf("got %+v, %v; want two of three items", read, err)
	}
	read, err = c.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: read.UnprocessedKeys})
	if err != nil || len(read.Responses[*c.table]) != 1 || len(read.UnprocessedKeys) != 0 {
		t.Fatalf("got %+v, %v; want the third item", read, err)
	}
	if err := c.raise(ctx); err != nil {
		t.Errorf("no batch, no partial one: %v", err)
	}
	if got := c.proxy.Faults()[dynamofake.Partial]; got != 2 {
		t.Errorf("%d partial batches, want 2", got)
	}
}

// A recorder sees each call, with its error and the capacity that it consumed.
func TestRecorder(t *testing.T) {
	c := newCounter(t, dynamofake.Step{Op: "DeleteItem", Fault: dynamofake.Fault{Kind: dynamofake.LoseReply}})
	recorder := dynamotest.NewRecorder(http.DefaultTransport)
	client := dynamotest.NewClient(c.proxy.URL, recorder)
	ctx := t.Context()
	if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: c.table, Item: key("p"), ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: c.table, Key: item{}}); err == nil {
		t.Fatal("a key of nothing is accepted")
	}
	if _, err := client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: c.table, Key: key("p")}); err == nil {
		t.Fatal("the reply was not lost")
	}
	batch, err := client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*c.table: {Keys: []item{key("p")}}}, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
	if err != nil || len(batch.Responses[*c.table]) != 0 {
		t.Fatalf("got %+v, %v; want nothing: it was deleted", batch, err)
	}
	if diff := cmp.Diff(map[string]int{"PutItem": 1, "GetItem": 1, "DeleteItem": 1, "BatchGetItem": 1}, recorder.Count()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	want := []dynamotest.Recorded{
		{Op: "PutItem", Status: 200, Consumed: []dynamotest.Consumed{{TableName: *c.table, CapacityUnits: 1, Table: dynamotest.Units{CapacityUnits: 1}}}},
		{Op: "GetItem", Status: 400, Error: "ValidationException"},
		{Op: "DeleteItem"},
		{Op: "BatchGetItem", Status: 200, Consumed: []dynamotest.Consumed{{TableName: *c.table}}},
	}
	if diff := cmp.Diff(want, recorder.Take()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	recorder.Want(t)
}

// failures is a test that records its failures.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.n++ }

func TestRecorderFailsTests(t *testing.T) {
	for _, tt := range []struct {
		want  []string
		fails int // in order, in any order
	}{
		{[]string{"PutItem", "GetItem"}, 0}, {[]string{"GetItem", "PutItem"}, 1}, {[]string{"PutItem"}, 2}, {nil, 2}, {[]string{"PutItem", "GetItem", "GetItem"}, 2},
	} {
		f := &failures{}
		for _, want := range []func(*dynamotest.Recorder){
			func(r *dynamotest.Recorder) { r.Want(f, tt.want...) },
			func(r *dynamotest.Recorder) { r.WantAnyOrder(f, tt.want...) },
		} {
			r := dynamotest.NewRecorder(stub{})
			client := dynamotest.NewClient("http://127.0.0.1", r)
			_, putErr := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("abc"), Item: key("p")})
			_, getErr := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("abc"), Key: key("p")})
			if err := errors.Join(putErr, getErr); err != nil {
				t.Fatal(err)
			}
			want(r)
		}
		if f.n != tt.fails {
			t.Errorf("wanting %v failed %d times, want %d", tt.want, f.n, tt.fails)
		}
	}
}

func TestProxyRequiresFaults(t *testing.T) {
	p := dynamotest.NewProxy(t, "http://127.0.0.1", nil)
	f := &failures{}
	p.Require(f, slices.Repeat([]dynamofake.Kind{dynamofake.Throttle}, 2)...)
	if f.n != 2 {
		t.Errorf("two faults that were never injected failed %d times, want 2", f.n)
	}
}
