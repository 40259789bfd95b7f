package dynamofake_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestTables(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	p.do(ctx, t, "create again", func(ctx context.Context, c client) (any, error) {
		_, err := c.CreateTable(ctx, tableInput(p.table))
		return nil, err
	})
	ttl := &dynamodb.UpdateTimeToLiveInput{TableName: p.table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)}}
	for range 2 {
		p.do(ctx, t, "time to live", func(ctx context.Context, c client) (any, error) { return c.UpdateTimeToLive(ctx, ttl) })
	}
	p.put(ctx, t, base(), nil)
	p.do(ctx, t, "describe", func(ctx context.Context, c client) (any, error) {
		out, err := c.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: p.table})
		if err != nil {
			return nil, err
		}
		d := out.Table
		return []any{d.TableName, d.TableStatus, d.KeySchema, d.ItemCount, len(d.AttributeDefinitions), len(d.GlobalSecondaryIndexes)}, nil
	})
	missing := aws.String("no-such-table")
	key := item{"PK": str("p"), "SK": str("s")}
	for what, call := range map[string]func(context.Context, client) (any, error){
		"describe": func(ctx context.Context, c client) (any, error) {
			return c.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: missing})
		},
		"put": func(ctx context.Context, c client) (any, error) {
			return c.PutItem(ctx, &dynamodb.PutItemInput{TableName: missing, Item: base()})
		},
		"get": func(ctx context.Context, c client) (any, error) {
			return c.GetItem(ctx, &dynamodb.GetItemInput{TableName: missing, Key: key})
		},
		"update": func(ctx context.Context, c client) (any, error) {
			return c.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: missing, Key: key})
		},
		"delete": func(ctx context.Context, c client) (any, error) {
			return c.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: missing, Key: key})
		},
		"batch get": func(ctx context.Context, c client) (any, error) {
			return c.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*missing: {Keys: []item{key}}}})
		},
		"transact": func(ctx context.Context, c client) (any, error) {
			return c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: missing, Item: base()}}}})
		},
	} {
		p.do(ctx, t, what+" without a table", call)
	}
}

func TestItems(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	with := func(name string, v types.AttributeValue) item {
		it := base()
		if v == nil {
			delete(it, name)
		} else {
			it[name] = v
		}
		return it
	}
	long := func(n int) types.AttributeValue { return str(strings.Repeat("x", n)) }
	for what, it := range map[string]item{
		"no partition key": with("PK", nil), "no sort key": with("SK", nil), "number as key": with("PK", num("1")), "binary as key": with("SK", bin("1")),
		"empty key": with("PK", str("")), "empty sort key": with("SK", str("")), "longest key": with("PK", long(2048)), "long key": with("PK", long(2049)),
		"longest sort key": with("SK", long(1024)), "long sort key": with("SK", long(1025)), "nothing": {},
		"index key of wrong type": with("GSI1PK", num("1")), "empty index key": with("GSI1PK", str("")), "half an index key": with("GSI1PK", nil),
		"index key too long": with("GSI1SK", long(1025)), "largest": with("s", long(409_000)), "too large": with("s", long(410_000)),
		"empty set": with("ss", strs()), "set with duplicates": with("ss", strs("a", "a")), "numbers twice": with("ns", nums("1", "1.0")), "empty string": with("s", str("")),
		"empty binary": with("b", bin("")), "empty list": with("l", list()), "empty document": with("m", doc(item{})), "nested": with("m", doc(item{"l": list(doc(item{"a": num("1")}), strs("x"))})),
		"no number": with("n", num("ten")), "empty number": with("n", num("")), "39 digits": with("n", num("123456789012345678901234567890123456789")), "38 digits": with("n", num("-12345678901234567890123456789012345678")),
		"too large a number": with("n", num("1e126")), "too small a number": with("n", num("1e-131")), "number with zeros": with("n", num("0001.500")), "number with plus": with("n", num("+1")), "point alone": with("n", num(".")), "leading point": with("n", num(".5")), "hex": with("n", num("0x10")),
		"bad number in a set": with("ns", nums("1", "x")), "bad number in a list": with("l", list(num("x"))), "false NULL": with("z", &types.AttributeValueMemberNULL{Value: false}),
		"zeros after 38 digits": with("n", num("1234567890123456789012345678901234567800000")),
	} {
		p.put(ctx, t, it, nil)
		p.get(ctx, t, "get after "+what)
	}
}

func TestKeys(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	p.put(ctx, t, base(), nil)
	for what, key := range map[string]item{
		"right": {"PK": str("p"), "SK": str("s")}, "half": {"PK": str("p")}, "none": {}, "three": {"PK": str("p"), "SK": str("s"), "s": str("hello")},
		"other type": {"PK": str("p"), "SK": num("1")}, "other name": {"PK": str("p"), "s": str("s")}, "empty": {"PK": str(""), "SK": str("s")}, "long": {"PK": str(strings.Repeat("x", 2049)), "SK": str("s")},
	} {
		p.do(ctx, t, "get with key "+what, func(ctx context.Context, c client) (any, error) {
			return c.GetItem(ctx, &dynamodb.GetItemInput{TableName: p.table, Key: key})
		})
		p.do(ctx, t, "delete with key "+what, func(ctx context.Context, c client) (any, error) {
			return c.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: p.table, Key: key})
		})
		p.do(ctx, t, "update with key "+what, func(ctx context.Context, c client) (any, error) {
			return c.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: p.table, Key: key, ReturnValues: types.ReturnValueAllNew})
		})
	}
}

func TestPlaceholders(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	p.put(ctx, t, base(), nil)
	names, vals := map[string]string{"#n": "n"}, item{":n": num("42")}
	for _, in := range []dynamodb.PutItemInput{
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeNames: names, ExpressionAttributeValues: vals},
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeNames: map[string]string{"#n": "n", "#s": "s"}, ExpressionAttributeValues: vals},
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeNames: names, ExpressionAttributeValues: item{":n": num("42"), ":s": str("")}},
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeNames: names},
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeValues: vals},
		{ExpressionAttributeNames: names},
		{ExpressionAttributeValues: vals},
		{ConditionExpression: aws.String("attribute_exists(#n)"), ExpressionAttributeNames: names, ExpressionAttributeValues: item{}},
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeNames: map[string]string{}, ExpressionAttributeValues: vals},
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeNames: map[string]string{"n": "n"}, ExpressionAttributeValues: vals},
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeNames: map[string]string{"#n": "n", "#": "s"}, ExpressionAttributeValues: vals},
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeNames: names, ExpressionAttributeValues: item{"n": num("42")}},
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeNames: names, ExpressionAttributeValues: item{":n": num("x")}},
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeNames: names, ExpressionAttributeValues: item{":n": strs()}},
		{ConditionExpression: aws.String("#n = :n"), ExpressionAttributeNames: map[string]string{"#n": ""}, ExpressionAttributeValues: vals},
		{ConditionExpression: aws.String("#n = :n" + strings.Repeat(" ", 4100)), ExpressionAttributeNames: names, ExpressionAttributeValues: vals},
		{ConditionExpression: aws.String("#n = :n" + strings.Repeat(" OR #n = :n", 290)), ExpressionAttributeNames: names, ExpressionAttributeValues: vals},
		{ConditionExpression: aws.String("#n = :n" + strings.Repeat(" OR #n = :n", 140)), ExpressionAttributeNames: names, ExpressionAttributeValues: vals},
		{ConditionExpression: aws.String("#n = :n" + strings.Repeat(" OR #n = :n", 160)), ExpressionAttributeNames: names, ExpressionAttributeValues: vals},
		{ReturnValues: types.ReturnValueAllNew},
		{ReturnValues: types.ReturnValueUpdatedOld},
		{ReturnValues: "NONSENSE"},
	} {
		in.TableName, in.Item = p.table, base()
		what := fmt.Sprintf("put if %.40s with %d names and %d values, returning %s", aws.ToString(in.ConditionExpression), len(in.ExpressionAttributeNames), len(in.ExpressionAttributeValues), in.ReturnValues)
		p.do(ctx, t, what, func(ctx context.Context, c client) (any, error) { return c.PutItem(ctx, &in) })
	}
}

// Writes and reads of items around whole kilobytes consume the capacity that DynamoDB
// bills.
func TestCapacity(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	// Numbers and attributes, with the bytes that they count.
	for _, it := range []item{
		{},
		{"n": num("42")},
		{"n": num("-42")},
		{"n": num("123")},
		{"n": num("-123")},
		{"n": num("1000")},
		{"n": num("0")},
		{"n": num("0.5")},
		{"n": num("1.25")},
		{"n": num("12345678901234567890")},
		{"n": num("1767225600000")},
		{"n": num("-1")},
		{"n": num("10")},
		{"n": num("100")},
		{"n": num("0.05")},
		{"n": num("1234.5")},
		{"t": yes(true)},
		{"z": null()},
		{"b": bin("abc")},
		{"s": str("häß")},
		{"ss": strs("a", "bc")},
		{"ns": nums("1", "22")},
		{"l": list(num("1"), str("ab"))},
		{"l": list()},
		{"m": doc(item{"a": num("1"), "bc": str("d")})},
		{"m": doc(item{})},
	} {
		it["PK"], it["SK"] = str("p"), str("s")
		for size := 990; size <= 1024; size++ {
			it["pad"] = str(strings.Repeat("x", size))
			p.put(ctx, t, it, nil)
			if t.Failed() {
				t.Fatalf("with %d bytes of padding in %v", size, it)
			}
		}
		p.get(ctx, t, "get")
	}
}
