package awsdb

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The answers of the tests, in DynamoDB's JSON: own is the key that calls ask for.
const (
	ownItem   = `"PK":{"S":"_/SYSTEM#"},"SK":{"S":"#VERSION"}`
	otherItem = `"PK":{"S":"_/OTHER#"},"SK":{"S":"#VERSION"}`
	otherSort = `"PK":{"S":"_/SYSTEM#"},"SK":{"S":"#OTHER"}`

	refusedBody  = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"failed","Item":{ITEM}}`
	canceledBody = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"canceled","CancellationReasons":[{"Code":"ConditionalCheckFailed","Item":{ITEM}}]}`
)

// itemCalls makes calls that are answered with an item.
func itemCalls() map[string]func(context.Context, Items) error {
	calls := everyCall()
	table := aws.String("t")
	calls["UpdateItem"] = func(ctx context.Context, c Items) error {
		w := schema.NewUpdate(schema.KeyOf(testKey()))
		w.Set("lw0", &types.AttributeValueMemberB{Value: []byte("own")})
		w.Add("n", 1)
		w.Remove("ttl")
		_, err := c.Write(ctx, w)
		return err
	}
	calls["UpdateItem of a counter"] = func(ctx context.Context, c Items) error {
		w := schema.NewUpdate(schema.KeyOf(testKey()))
		w.Set("c", schema.NumberAttribute(700))
		w.Answer = schema.AnswerUpdated
		_, err := c.Write(ctx, w)
		return err
	}
	calls["Query"] = func(ctx context.Context, c Items) error {
		_, err := c.Query(ctx, &dynamodb.QueryInput{
			TableName: table, KeyConditionExpression: aws.String("#pk = :pk AND begins_with(#sk, :sk)"), ExpressionAttributeNames: map[string]string{"#pk": "PK", "#sk": "SK"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":pk": testKey()["PK"], ":sk": testKey()["SK"]},
		})
		return err
	}
	return calls
}

// A reply with another item than the one asked for, or without the values that the call set, is
// no reply: the outcome of the call is not known, and DynamoDB counts as unavailable.
func TestRepliesOfOtherCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op, body string
		status   int
		want     error // nil = the reply is right
	}{
		{"GetItem", `{"Item":{` + ownItem + `}}`, 200, nil},
		{"GetItem", `{"Item":{` + otherItem + `}}`, 200, limiter.ErrUncertain},
		{"GetItem", `{"Item":{` + otherSort + `}}`, 200, limiter.ErrUncertain},
		{"GetItem", `{"Item":{"n":{"N":"1"}}}`, 200, limiter.ErrUncertain},
		{"GetItem", `{"Item":{"PK":{"N":"1"},"SK":{"S":"#VERSION"}}}`, 200, limiter.ErrUncertain},
		{"UpdateItem", `{"Attributes":{` + ownItem + `,"lw0":{"B":"b3du"}}}`, 200, nil},
		{"UpdateItem", `{"Attributes":{` + otherItem + `,"lw0":{"B":"b3du"}}}`, 200, limiter.ErrUncertain},
		{"UpdateItem", `{"Attributes":{` + ownItem + `,"lw0":{"B":"b3dv"}}}`, 200, limiter.ErrUncertain},
		{"UpdateItem", `{"Attributes":{` + ownItem + `,"lw0":{"S":"own"}}}`, 200, limiter.ErrUncertain},
		{"UpdateItem", `{"Attributes":{` + ownItem + `}}`, 200, limiter.ErrUncertain},
		{"UpdateItem", strings.Replace(refusedBody, "ITEM", ownItem, 1), 400, limiter.ErrConflict},
		{"UpdateItem", strings.Replace(refusedBody, "ITEM", otherItem, 1), 400, limiter.ErrUncertain},
		{"UpdateItem", strings.Replace(refusedBody, "ITEM", ``, 1), 400, limiter.ErrConflict}, // there is none
		{"UpdateItem of a counter", `{"Attributes":{"c":{"N":"700"}}}`, 200, nil},
		{"UpdateItem of a counter", `{"Attributes":{"c":{"N":"700.0"}}}`, 200, nil},
		{"UpdateItem of a counter", `{"Attributes":{"c":{"N":"7"}}}`, 200, limiter.ErrUncertain},
		{"UpdateItem of a counter", `{"Attributes":{"d":{"N":"700"}}}`, 200, limiter.ErrUncertain},
		{"UpdateItem of a counter", `{"Attributes":{` + ownItem + `,"c":{"N":"700"}}}`, 200, limiter.ErrUncertain},
		{"PutItem", `{}`, 200, nil},
		{"PutItem", `{"Attributes":{` + ownItem + `}}`, 200, limiter.ErrUncertain},
		{"PutItem", strings.Replace(refusedBody, "ITEM", ownItem, 1), 400, limiter.ErrConflict},
		{"PutItem", strings.Replace(refusedBody, "ITEM", otherItem, 1), 400, limiter.ErrUncertain},
		{"BatchGetItem", `{"Responses":{"t":[{` + ownItem + `}]},"UnprocessedKeys":{}}`, 200, nil},
		{"BatchGetItem", `{"Responses":{"t":[]},"UnprocessedKeys":{"t":{"Keys":[{` + ownItem + `}]}}}`, 200, nil},
		{"BatchGetItem", `{"Responses":{"t":[{` + otherItem + `}]},"UnprocessedKeys":{}}`, 200, limiter.ErrUncertain},
		{"BatchGetItem", `{"Responses":{"t":[{` + ownItem + `},{` + ownItem + `}]},"UnprocessedKeys":{}}`, 200, limiter.ErrUncertain},
		{"BatchGetItem", `{"Responses":{"t":[]},"UnprocessedKeys":{"t":{"Keys":[{` + otherSort + `}]}}}`, 200, limiter.ErrUncertain},
		{"BatchWriteItem", `{"UnprocessedItems":{"t":[{"DeleteRequest":{"Key":{` + ownItem + `}}}]}}`, 200, nil},
		{"BatchWriteItem", `{"UnprocessedItems":{"t":[{"DeleteRequest":{"Key":{` + otherItem + `}}}]}}`, 200, limiter.ErrUncertain},
		{"BatchWriteItem", `{"UnprocessedItems":{"u":[{"DeleteRequest":{"Key":{` + ownItem + `}}}]}}`, 200, limiter.ErrUncertain},
		{"Query", `{"Items":[{` + ownItem + `},{` + otherSort + `}]}`, 200, nil},
		{"Query", `{"Items":[{` + ownItem + `},{` + otherItem + `}]}`, 200, limiter.ErrUncertain},
		{"Query", `{"Items":[],"LastEvaluatedKey":{` + otherItem + `}}`, 200, limiter.ErrUncertain},
		{"TransactWriteItems", strings.Replace(canceledBody, "ITEM", ownItem, 1), 400, limiter.ErrConflict},
		{"TransactWriteItems", strings.Replace(canceledBody, "ITEM", otherItem, 1), 400, limiter.ErrUncertain},
		{"TransactWriteItems", `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[]}`, 400, limiter.ErrUncertain},
	} {
		g := answering(t, tt.status, http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Requestid": {"1"}}, tt.body)
		var log bytes.Buffer
		g.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		for _, of := range append(slices.Repeat([]Items{g}, outageFailures), g.items) { // with a guard, and without
			err := Translate(itemCalls()[tt.op](t.Context(), of))
			if tt.want == nil && err != nil {
				t.Errorf("%s answered with %s: %v", tt.op, tt.body, err)
			} else if tt.want != nil {
				wantKinds(t, tt.op+" answered with "+tt.body, err, tt.want)
			}
		}
		wrong := errors.Is(tt.want, limiter.ErrUncertain)
		_, open := g.Outages()
		if n := g.WrongReplies(); open != wrong || n != map[bool]int64{true: outageFailures}[wrong] {
			t.Errorf("%s answered with %s: an outage is %t, %d wrong replies", tt.op, tt.body, open, n)
		}
		if lines := strings.Count(log.String(), "level=ERROR"); lines > 0 != wrong { // one a second, however slow the machine is
			t.Errorf("%s answered with %s: %d lines in the log\n%s", tt.op, tt.body, lines, &log)
		}
	}
}

// The log says which item was asked for, and which one came. A line a second stands for all.
func TestTheLogOfWrongReplies(t *testing.T) {
	var log bytes.Buffer
	logger, now := slog.New(slog.NewTextHandler(&log, nil)), time.Unix(0, 0)
	err := checkKey("GetItem", schema.KeyOf(testKey()), map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "x"}})
	var w wrongReplies
	for range 3 {
		w.saw(t.Context(), logger, err, now)
	}
	w.saw(t.Context(), logger, err, now.Add(wrongReplyEvery))
	for _, want := range []string{`GetItem of PK=\"_/SYSTEM#\" SK=\"#VERSION\"`, `it has the item PK=\"x\" SK=none`, "suppressed=0", "suppressed=2"} {
		if strings.Count(log.String(), want) == 0 {
			t.Errorf("the log has no %s:\n%s", want, &log)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 2 || w.total() != 4 {
		t.Errorf("%d lines for %d replies, want 2 for 4", lines, w.total())
	}
}

// A client that answers without the item has seen itself that the reply is that to the call. With the item the reply is
// checked as any other.
func TestReplyWithoutTheItem(t *testing.T) {
	w := schema.NewUpdate(schema.KeyOf(testKey()))
	w.Set("a", schema.NumberAttribute(1))
	w.Known = 7
	whole := testKey()
	whole["a"] = &types.AttributeValueMemberN{Value: "1"}
	other := testKey()
	other[schema.AttrPK] = &types.AttributeValueMemberS{Value: "other"}
	for _, c := range []struct {
		name string
		got  item
		want error
	}{
		{"no attributes", nil, nil},
		{"the item", whole, nil},
		{"the item without what was set", testKey(), errOther},
		{"another item", other, errOther},
		{"what was set alone", item{"a": whole["a"]}, errOther},
	} {
		if err := CheckReply(w, c.got, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	w.Known = 0
	if err := CheckReply(w, item(nil), nil); !errors.Is(err, errIncomplete) {
		t.Errorf("a reply without the item that was asked for: %v, want %v", err, errIncomplete)
	}
}
