package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// decider returns a limiter over a store that decides by memory under the policy Local.
func decider(t *testing.T, s limiter.Store, budget time.Duration) *limiter.Limiter {
	t.Helper()
	fallback := embedded.New(embedded.Config{})
	t.Cleanup(func() {
		if err := fallback.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	l, err := limiter.New(limiter.Config{Store: s, Fallback: fallback, Timeout: budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// asking is a request for tokens of limit "l" of an entity, by a policy.
func asking(entity string, amount int64, p limiter.Policy) *limiter.Request {
	return &limiter.Request{OnUnavailable: p, Takes: []limiter.Take{{
		Entity: entity, Resource: "r", Consume: []limiter.Consumption{{Limit: "l", Amount: amount}},
	}}}
}

// wantRefused requires that no policy admits, because another try cannot help, and
// that the error says why.
func wantRefused(t *testing.T, l *limiter.Limiter, mentions ...string) {
	t.Helper()
	for _, p := range []limiter.Policy{limiter.Allow, limiter.Deny, limiter.Local} {
		var d limiter.Decision
		err := l.Decide(t.Context(), t0(), asking("e", tokens(1), p), &d)
		if d.Admitted || !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%v: admitted = %t, %v; want %q", p, d.Admitted, err, limiter.ErrInvalid)
			continue
		}
		for _, m := range mentions {
			if !strings.Contains(err.Error(), m) {
				t.Errorf("%v: %q does not say %q", p, err, m)
			}
		}
	}
}

// wantFallback requires that policies decide, and that decisions say why.
func wantFallback(t *testing.T, l *limiter.Limiter, mentions ...string) {
	t.Helper()
	for _, p := range []limiter.Policy{limiter.Allow, limiter.Deny} {
		var d limiter.Decision
		err := l.Decide(t.Context(), t0(), asking("e", tokens(1), p), &d)
		if err != nil || d.Policy != p || d.Admitted != (p == limiter.Allow) || !errors.Is(d.Unavailable, limiter.ErrUnavailable) {
			t.Errorf("%v: admitted = %t by %q, %v, %v; want %q", p, d.Admitted, d.Policy, d.Unavailable, err, limiter.ErrUnavailable)
			continue
		}
		for _, m := range mentions {
			if !strings.Contains(d.Unavailable.Error(), m) {
				t.Errorf("%v: %q does not say %q", p, d.Unavailable, m)
			}
		}
	}
}

// A table that cannot be used, as DynamoDB Local answers: no policy admits where the
// table is another, and policies decide where there is none. Nothing is written.
func TestUnusableTables(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	for _, tt := range []struct {
		name   string
		change func(*dynamodb.CreateTableInput)
		want   string
	}{
		{"there is none", nil, "ResourceNotFoundException"},
		{"other keys", func(in *dynamodb.CreateTableInput) {
			in.KeySchema[0].AttributeName, in.AttributeDefinitions[0].AttributeName = aws.String("id"), aws.String("id")
		}, "ValidationException"},
		{"keys of another type", func(in *dynamodb.CreateTableInput) {
			in.AttributeDefinitions[0].AttributeType = types.ScalarAttributeTypeN
		}, "ValidationException"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := dynamotest.TableName(t)
			if tt.change != nil {
				in := dynamo.TableInput(table)
				tt.change(in)
				if _, err := client.CreateTable(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			}
			s := newStore(t, client, func(cfg *dynamo.Config) { cfg.Table = table })
			defer closing(t, s)
			if tt.change == nil {
				wantFallback(t, decider(t, s, time.Minute), table, tt.want)
				return
			}
			wantRefused(t, decider(t, s, time.Minute), table, tt.want)
			if out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table}); err != nil || out.Count != 0 {
				t.Errorf("%d items were written, %v", out.Count, err)
			}
		})
	}
}

// ready is a store in memory with a bucket of entity e under stored limits.
func ready(t *testing.T) (*dynamofake.DB, *dynamo.Store) {
	t.Helper()
	db := newTable(t)
	s := newStore(t, db, nil)
	if err := s.PutLimits(t.Context(), "default", limiter.ResourceLimitsRef("r"), limiter.Record{Limits: limitsOf(t, limiter.PerDay("l", 1000))}); err != nil {
		t.Fatal(err)
	}
	var d limiter.Decision
	if err := decider(t, s, time.Minute).Decide(t.Context(), t0(), asking("e", tokens(1), limiter.Deny), &d); err != nil || !d.Admitted {
		t.Fatalf("admitted = %t, %v", d.Admitted, err)
	}
	return db, s
}

// Whichever call DynamoDB refuses to make: no policy admits where the call is wrong or
// the role lacks a permission, and policies decide where something else is to be mended.
func TestRefusedCalls(t *testing.T) {
	for code, want := range map[string]func(*testing.T, *limiter.Limiter, ...string){
		"AccessDeniedException": wantRefused, "ValidationException": wantRefused,
		"UnrecognizedClientException": wantFallback, "InvalidSignatureException": wantFallback, "SomethingNew": wantFallback,
	} {
		for _, op := range []string{"GetItem", "BatchGetItem", "UpdateItem", "PutItem"} {
			t.Run(code+" of "+op, func(t *testing.T) {
				db, s := ready(t)
				defer closing(t, s)
				if op != "UpdateItem" { // else by the records that the store has read
					closing(t, s)
					s = newStore(t, db, nil)
				}
				if op == "PutItem" {
					if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("buckets"), Key: bucketOf(t, db)}); err != nil {
						t.Fatal(err)
					}
				}
				refused := 0
				db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
					if c.Op != op {
						return dynamofake.Fault{}
					}
					refused++
					return dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: code, Message: "for the test"}}
				})
				want(t, decider(t, s, time.Minute), code)
				if refused < 2 || refused > 6 {
					t.Errorf("%d calls were refused for 2 or 3 decisions, want 2 to 6", refused)
				}
			})
		}
	}
}

// Without a listener the policy decides, and the errors of decisions name the place
// of the store.
func TestUnreachableEndpoint(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	client, err := dynamo.NewClient(t.Context(), dynamo.ClientConfig{Endpoint: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t, client, nil)
	defer closing(t, s)
	l := decider(t, s, 10*time.Second)
	var d limiter.Decision
	for _, p := range []limiter.Policy{limiter.Allow, limiter.Deny, limiter.Allow} {
		if err := l.Decide(t.Context(), t0(), asking("e", tokens(1), p), &d); err != nil || d.Admitted != (p == limiter.Allow) || d.Policy != p || !errors.Is(d.Unavailable, limiter.ErrUnavailable) {
			t.Errorf("%v: admitted = %t by policy %q, %v, %v", p, d.Admitted, d.Policy, d.Unavailable, err)
		}
	}
	if d.Unavailable == nil || !strings.Contains(d.Unavailable.Error(), address) {
		t.Errorf("%v does not say %s", d.Unavailable, address)
	}
}

// An item that a decision rests on and that is not as this program writes it: no
// policy admits, the error names item and attribute, and nothing is written.
func TestCorruptItemsAdmitNobody(t *testing.T) {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	for _, item := range []struct {
		name, suffix, sort, attribute string
		optional                      bool
	}{
		{name: "the bucket", suffix: "/BUCKET#e#r#0", sort: "#STATE", attribute: "b_l_cp"},
		{name: "the limits", suffix: "/RESOURCE#r", sort: "#CONFIG", attribute: "config_version"},
		{name: "the limit", suffix: "/RESOURCE#r", sort: "#CONFIG", attribute: "l_l_cp"},
		{name: "the generation", suffix: "/CONFIGURATION#", sort: "#GENERATION", attribute: "generation", optional: true},
	} {
		for _, value := range []types.AttributeValue{nil, text("1"), number("-1"), number("1.5")} {
			if value == nil && item.optional {
				continue
			}
			t.Run(fmt.Sprintf("%s %T", item.name, value), func(t *testing.T) {
				db, s := ready(t)
				closing(t, s)
				ns := strings.TrimSuffix(bucketOf(t, db)["PK"].(*types.AttributeValueMemberS).Value, "/BUCKET#e#r#0")
				key := map[string]types.AttributeValue{"PK": text(ns + item.suffix), "SK": text(item.sort)}
				corrupt(t, db, key, item.attribute, value)
				before := itemAt(t, db, key)
				s = newStore(t, db, nil)
				defer closing(t, s)
				wantRefused(t, decider(t, s, time.Minute), item.suffix[1:], item.attribute)
				if diff := cmp.Diff(before, itemAt(t, db, key)); diff != "" {
					t.Errorf("the item was changed (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// itemAt returns an item in a form that can be compared.
func itemAt(t *testing.T, db *dynamofake.DB, key map[string]types.AttributeValue) map[string]string {
	t.Helper()
	out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("buckets"), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	item := map[string]string{}
	for name, v := range out.Item {
		item[name] = fmt.Sprintf("%#v", reflect.Indirect(reflect.ValueOf(v)))
	}
	return item
}

// corrupt sets an attribute of an item, which must have it; nil removes it.
func corrupt(t *testing.T, db *dynamofake.DB, key map[string]types.AttributeValue, attribute string, value types.AttributeValue) {
	t.Helper()
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String("buckets"), Key: key, ConditionExpression: aws.String("attribute_exists(#a)"),
		UpdateExpression: aws.String("REMOVE #a"), ExpressionAttributeNames: map[string]string{"#a": attribute},
	}
	if value != nil {
		in.UpdateExpression, in.ExpressionAttributeValues = aws.String("SET #a = :v"), map[string]types.AttributeValue{":v": value}
	}
	if _, err := db.UpdateItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}
