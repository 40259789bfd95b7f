package dynamofake_test

import (
	"cmp"
	"context"
	"errors"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

type item = map[string]types.AttributeValue

func str(v string) types.AttributeValue     { return &types.AttributeValueMemberS{Value: v} }
func num(v string) types.AttributeValue     { return &types.AttributeValueMemberN{Value: v} }
func bin(v string) types.AttributeValue     { return &types.AttributeValueMemberB{Value: []byte(v)} }
func yes(v bool) types.AttributeValue       { return &types.AttributeValueMemberBOOL{Value: v} }
func strs(v ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: v} }
func nums(v ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: v} }
func bins(v ...[]byte) types.AttributeValue { return &types.AttributeValueMemberBS{Value: v} }
func list(v ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: v}
}
func doc(v item) types.AttributeValue { return &types.AttributeValueMemberM{Value: v} }
func null() types.AttributeValue      { return &types.AttributeValueMemberNULL{Value: true} }

// base has an attribute of every type, called as the placeholder that names it.
func base() item {
	return item{
		"PK": str("p"), "SK": str("s"), "s": str("hello"), "n": num("42"), "b": bin("hello"), "t": yes(true), "z": null(),
		"l": list(num("42"), str("hello")), "m": doc(item{"k": num("1")}), "ss": strs("hello", "you"), "ns": nums("42", "7"),
		"bs": bins([]byte("hello"), []byte("you")), "f": num("-0.5"), "big": num("99999999999999999999999999999999999999"), "e": str(""),
		"GSI1PK": str("g"), "GSI1SK": str("x"),
	}
}

// values are those that expressions of tests use.
func values() item {
	return item{
		":s": str("hello"), ":hel": str("hel"), ":zz": str("zz"), ":e": str(""), ":n": num("42"), ":one": num("1"), ":neg": num("-7.50"),
		":big": num("99999999999999999999999999999999999998"), ":huge": num("9e125"), ":tiny": num("1e-130"), ":z0": num("-0"),
		":b": bin("hello"), ":be": bin("hel"), ":t": yes(true), ":f": yes(false), ":z": null(), ":l": list(num("42.0"), str("hello")),
		":l1": list(str("more")), ":m": doc(item{"k": num("1.0")}), ":ss": strs("you", "hello"), ":ss1": strs("they"), ":ns": nums("7", "42"),
		":ns1": nums("7.0"), ":bs": bins([]byte("you"), []byte("hello")), ":bs1": bins([]byte("you")), ":tS": str("S"), ":tN": str("N"), ":tX": str("X"),
	}
}

var (
	namePattern  = regexp.MustCompile(`#\w+`)
	valuePattern = regexp.MustCompile(`:\w+`)
)

// unknown are placeholders that tests leave undefined.
var unknown = []string{"#undefined", ":undefined"}

// used are the names and values that some expressions use; nil if none.
func used(expressions ...*string) (names map[string]string, vals item) {
	all := values()
	for _, e := range expressions {
		for _, name := range namePattern.FindAllString(aws.ToString(e), -1) {
			if !slices.Contains(unknown, name) {
				names = set(names, name, name[1:])
			}
		}
		for _, name := range valuePattern.FindAllString(aws.ToString(e), -1) {
			if v, ok := all[name]; ok {
				vals = set(vals, name, v)
			}
		}
	}
	return names, vals
}

func set[V any](m map[string]V, key string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = v
	return m
}

// pair is a DynamoDB Local and a fake that are asked the same.
type pair struct {
	real, fake client
	table      *string
}

// client has the methods that both are called with.
type client interface {
	CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// newPair makes an empty table on both: two indexes, one KEYS_ONLY, one with an
// attribute.
func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{real: dynamotest.Start(t).Client(t), fake: dynamofake.New(), table: aws.String(dynamotest.TableName(t))}
	for _, c := range []client{p.real, p.fake} {
		if _, err := c.CreateTable(t.Context(), tableInput(p.table)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func tableInput(name *string) *dynamodb.CreateTableInput {
	key := func(hash, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}, {AttributeName: &sort, KeyType: types.KeyTypeRange}}
	}
	in := &dynamodb.CreateTableInput{
		TableName: name, KeySchema: key("PK", "SK"), BillingMode: types.BillingModePayPerRequest,
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
			{IndexName: aws.String("GSI1"), KeySchema: key("GSI1PK", "GSI1SK"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}},
			{IndexName: aws.String("GSI2"), KeySchema: key("GSI2PK", "GSI2SK"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"s"}}},
		},
	}
	for _, name := range []string{"PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK"} {
		kind := types.ScalarAttributeTypeS
		if name == "GSI2SK" {
			kind = types.ScalarAttributeTypeN
		}
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind})
	}
	return in
}

// outcome is all that a caller sees of a call.
type outcome struct {
	Code    string // of the error, "" = none
	Item    item   // of a failed condition
	Reasons []types.CancellationReason
	Out     any
}

func newOutcome(out any, err error) outcome {
	if err == nil {
		return outcome{Out: out}
	}
	var o outcome
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		o.Code = err.Error()
		return o
	}
	o.Code = api.ErrorCode()
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		o.Item = failed.Item
	}
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		o.Reasons = slices.Clone(cancelled.CancellationReasons)
		for i := range o.Reasons {
			o.Reasons[i].Message = nil
		}
	}
	return o
}

// exact is the value of a number, which DynamoDB Local returns as it was written and
// DynamoDB in one form.
func exact(n string) string {
	r, ok := new(big.Rat).SetString(n)
	if !ok {
		return n
	}
	return r.String()
}

// same are the options of comparing outcomes: sets have no order, numbers no form.
var same = gocmp.Options{
	gocmp.Exporter(func(reflect.Type) bool { return true }),
	cmpopts.IgnoreTypes(middleware.Metadata{}),
	cmpopts.EquateEmpty(),
	gocmp.Transformer("SS", func(v types.AttributeValueMemberSS) []string { return slices.Sorted(slices.Values(v.Value)) }),
	gocmp.Transformer("N", func(v types.AttributeValueMemberN) string { return exact(v.Value) }),
	gocmp.Transformer("NS", func(v types.AttributeValueMemberNS) []string {
		set := make([]string, len(v.Value))
		for i, n := range v.Value {
			set[i] = exact(n)
		}
		slices.Sort(set)
		return set
	}),
	gocmp.Transformer("BS", func(v types.AttributeValueMemberBS) []string {
		set := make([]string, len(v.Value))
		for i, b := range v.Value {
			set[i] = string(b)
		}
		slices.Sort(set)
		return set
	}),
}

// failer is a test or a property.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// do asks both the same and demands the same outcome.
func (p *pair) do(ctx context.Context, tb failer, what string, call func(context.Context, client) (any, error)) {
	tb.Helper()
	out, wantErr := call(ctx, p.real)
	want := newOutcome(out, wantErr)
	out, err := call(ctx, p.fake)
	got := newOutcome(out, err)
	if diff := gocmp.Diff(want, got, same); diff != "" {
		tb.Errorf("%s (-DynamoDB Local +dynamofake):\n%s\nerrors: %v\n%v", what, diff, wantErr, err)
	}
}

// put puts an item, with a condition if it is not nil.
func (p *pair) put(ctx context.Context, tb failer, it item, condition *string) {
	tb.Helper()
	names, vals := used(condition)
	in := &dynamodb.PutItemInput{
		TableName: p.table, Item: it, ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: vals,
		ReturnValues: types.ReturnValueAllOld, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	p.do(ctx, tb, "put if "+cmp.Or(aws.ToString(condition), "nothing"), func(ctx context.Context, c client) (any, error) { return c.PutItem(ctx, in) })
}

// update updates the item with keys p and s, and compares the items afterwards.
func (p *pair) update(ctx context.Context, tb failer, update, condition *string, want types.ReturnValue) {
	tb.Helper()
	names, vals := used(update, condition)
	in := &dynamodb.UpdateItemInput{
		TableName: p.table, Key: item{"PK": str("p"), "SK": str("s")}, UpdateExpression: update, ConditionExpression: condition,
		ExpressionAttributeNames: names, ExpressionAttributeValues: vals,
		ReturnValues: want, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	what := "update " + aws.ToString(update) + " if " + aws.ToString(condition) + " returning " + string(want)
	p.do(ctx, tb, what, func(ctx context.Context, c client) (any, error) { return c.UpdateItem(ctx, in) })
	p.get(ctx, tb, what+", then get")
}

func (p *pair) get(ctx context.Context, tb failer, what string) {
	tb.Helper()
	in := &dynamodb.GetItemInput{
		TableName: p.table, Key: item{"PK": str("p"), "SK": str("s")}, ConsistentRead: aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	p.do(ctx, tb, what, func(ctx context.Context, c client) (any, error) { return c.GetItem(ctx, in) })
}

// delete deletes the item with keys p and s.
func (p *pair) delete(ctx context.Context, tb failer, condition *string) {
	tb.Helper()
	names, vals := used(condition)
	in := &dynamodb.DeleteItemInput{
		TableName: p.table, Key: item{"PK": str("p"), "SK": str("s")}, ConditionExpression: condition,
		ExpressionAttributeNames: names, ExpressionAttributeValues: vals,
		ReturnValues: types.ReturnValueAllOld, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	p.do(ctx, tb, "delete if "+aws.ToString(condition), func(ctx context.Context, c client) (any, error) { return c.DeleteItem(ctx, in) })
}
