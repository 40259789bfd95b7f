package dynamofake_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func keyOf(pk, sk string) item { return item{"PK": str(pk), "SK": str(sk)} }

// DynamoDB Local reports other capacity than DynamoDB for batches and transactions,
// so they are not asked for it here.

func TestBatchGet(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	p.put(ctx, t, base(), nil)
	many := make([]item, 101)
	for i := range many {
		many[i] = keyOf("p", strconv.Itoa(i))
	}
	for what, k := range map[string]types.KeysAndAttributes{
		"one": {Keys: []item{keyOf("p", "s")}}, "missing": {Keys: []item{keyOf("p", "q")}}, "two": {Keys: []item{keyOf("p", "s"), keyOf("p", "q")}, ConsistentRead: aws.Bool(true)},
		"twice": {Keys: []item{keyOf("p", "s"), keyOf("p", "s")}}, "bad": {Keys: []item{{"PK": str("p")}}}, "100": {Keys: many[:100]}, "101": {Keys: many},
	} {
		in := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*p.table: k}}
		p.do(ctx, t, "batch get of "+what, func(ctx context.Context, c client) (any, error) { return c.BatchGetItem(ctx, in) })
	}
	p.do(ctx, t, "empty batch get", func(ctx context.Context, c client) (any, error) {
		return c.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{}})
	})
}

func TestBatchWrite(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	put := func(sk string, with item) types.WriteRequest {
		it := keyOf("p", sk)
		maps.Copy(it, with)
		return types.WriteRequest{PutRequest: &types.PutRequest{Item: it}}
	}
	remove := func(sk string) types.WriteRequest {
		return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: keyOf("p", sk)}}
	}
	many := make([]types.WriteRequest, 26)
	for i := range many {
		many[i] = put(strconv.Itoa(i), nil)
	}
	for _, list := range [][]types.WriteRequest{
		{put("s", base())},
		{put("s", item{"n": num("1")}), put("t", item{"GSI1PK": str("g"), "GSI1SK": str("1")})},
		{remove("s"), put("t", nil)},
		{remove("q")},
		{put("s", nil), remove("s")},
		{put("s", nil), put("s", nil)},
		{},
		many[:25], many,
		{{}},
		{put("", nil)},
		{put("s", item{"GSI1PK": num("1")})},
	} {
		in := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{*p.table: list}}
		p.do(ctx, t, fmt.Sprintf("batch write of %d", len(list)), func(ctx context.Context, c client) (any, error) { return c.BatchWriteItem(ctx, in) })
		p.get(ctx, t, "get")
	}
}

func TestTransactions(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	p.put(ctx, t, base(), nil)
	key := keyOf("p", "s")
	names, vals := map[string]string{"#n": "n"}, item{":n": num("42")}
	old := types.ReturnValuesOnConditionCheckFailureAllOld
	yes, no := aws.String("#n = :n"), aws.String("#n <> :n")
	check := func(e *string) types.TransactWriteItem {
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: p.table, Key: key, ConditionExpression: e, ExpressionAttributeNames: names, ExpressionAttributeValues: vals, ReturnValuesOnConditionCheckFailure: old}}
	}
	put := func(it item, e *string) types.TransactWriteItem {
		w := &types.Put{TableName: p.table, Item: it, ConditionExpression: e}
		if e != nil {
			w.ExpressionAttributeNames, w.ExpressionAttributeValues = names, vals
		}
		return types.TransactWriteItem{Put: w}
	}
	update := func(k item, u string) types.TransactWriteItem {
		return types.TransactWriteItem{Update: &types.Update{TableName: p.table, Key: k, UpdateExpression: &u, ExpressionAttributeNames: names, ExpressionAttributeValues: vals}}
	}
	remove := types.TransactWriteItem{Delete: &types.Delete{TableName: p.table, Key: keyOf("p", "t")}}
	many := make([]types.TransactWriteItem, 101)
	for i := range many {
		many[i] = put(keyOf("many", strconv.Itoa(i)), nil)
	}
	for i, list := range [][]types.TransactWriteItem{
		{check(yes)},
		{check(no)},
		{check(yes), put(keyOf("p", "t"), nil)},
		{check(no), put(keyOf("p", "u"), nil)},
		{put(keyOf("p", "u"), yes), check(no)},
		{put(keyOf("p", "u"), no), update(key, "ADD #n :n"), remove},
		{update(key, "SET #n = #n - :n")},
		{update(keyOf("q", "r"), "ADD #n :n")},
		{remove},
		{check(yes), remove, remove},
		{check(yes), update(key, "ADD #n :n")},
		{},
		{{}},
		{{Put: check(yes).Put, Delete: remove.Delete, ConditionCheck: check(yes).ConditionCheck}},
		many[:100], many,
		{update(key, "ADD #PK :n")},
		{update(key, "ADD #undefined :n")},
		{put(item{"PK": str("p"), "SK": str("g"), "GSI1PK": str("g"), "GSI1SK": str("s")}, nil)},
	} {
		in := &dynamodb.TransactWriteItemsInput{TransactItems: list}
		p.do(ctx, t, fmt.Sprintf("transaction %d", i), func(ctx context.Context, c client) (any, error) { return c.TransactWriteItems(ctx, in) })
		p.get(ctx, t, fmt.Sprintf("get after transaction %d", i))
	}
	for range 2 {
		in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{update(key, "ADD #n :n")}, ClientRequestToken: aws.String("once")}
		p.do(ctx, t, "transaction with a token", func(ctx context.Context, c client) (any, error) { return c.TransactWriteItems(ctx, in) })
		p.get(ctx, t, "get after it")
	}
	in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{update(key, "SET #n = :n")}, ClientRequestToken: aws.String("once")}
	p.do(ctx, t, "another transaction with the token", func(ctx context.Context, c client) (any, error) { return c.TransactWriteItems(ctx, in) })
}

func TestQueries(t *testing.T) {
	p := newPair(t)
	ctx := t.Context()
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(24) {
		it := keyOf("p", fmt.Sprintf("s%02d", i))
		it["s"], it["n"], it["GSI1PK"], it["GSI1SK"] = str("hello"), num(strconv.Itoa(i)), str("hello"), str(fmt.Sprintf("hel%02d", 50-i))
		if i%2 == 0 {
			it["GSI2PK"], it["GSI2SK"] = str("hello"), num(strconv.Itoa(9-i))
		}
		p.put(ctx, t, it, nil)
	}
	p.put(ctx, t, keyOf("hello", "hello"), nil)
	p.put(ctx, t, keyOf("hello", "zz"), nil)
	p.put(ctx, t, keyOf("hel", "hello"), nil)
	main := dynamodb.QueryInput{}
	first, second := dynamodb.QueryInput{IndexName: aws.String("GSI1")}, dynamodb.QueryInput{IndexName: aws.String("GSI2")}
	run := func(in dynamodb.QueryInput, key string) {
		t.Helper()
		in.TableName, in.KeyConditionExpression, in.ReturnConsumedCapacity = p.table, &key, types.ReturnConsumedCapacityIndexes
		if key == "-" {
			in.KeyConditionExpression = nil
		}
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = used(in.KeyConditionExpression, in.FilterExpression)
		what := fmt.Sprintf("query %s if %s, filter %s, limit %d", aws.ToString(in.IndexName), key, aws.ToString(in.FilterExpression), aws.ToInt32(in.Limit))
		p.do(ctx, t, what, func(ctx context.Context, c client) (any, error) { return c.Query(ctx, &in) })
	}
	for _, key := range []string{
		"#PK = :s", "#PK = :hel", "#PK = :zz", "#PK = :s AND #SK = :s", "#PK = :s AND #SK > :hel", "#PK = :s AND #SK >= :s", "#PK = :s AND #SK < :zz", "#PK = :s AND #SK <= :zz", "#PK = :s AND #SK BETWEEN :hel AND :zz", "#PK = :s AND begins_with(#SK, :hel)",
		"#SK = :s AND #PK = :s", "(#PK = :s) AND (#SK = :s)", "(#PK = :s AND #SK = :s)", "#PK = :s AND begins_with(#SK, :e)", "#PK = :s AND #SK = :e", "#PK = :e",
		"-", "", "#SK = :s", "#PK > :s", "#PK = :s OR #SK = :s", "#PK = :s AND #SK <> :s", "#PK <> :s", "#PK = :s AND #s = :s", "#PK = :s AND #PK = :s", "#PK = :s AND #SK > :hel AND #SK < :zz",
		"#PK = :n", "#PK = :s AND #SK = :n", "#PK = #SK", ":s = #PK", "begins_with(#PK, :s)", "#PK = :s AND attribute_exists(#SK)", "#PK BETWEEN :hel AND :zz", "#PK = :s AND #SK BETWEEN :zz AND :hel",
		"#PK = :undefined", "#PK = :s AND begins_with(#SK, :n)", "#GSI1PK = :s",
	} {
		run(main, key)
	}
	for _, key := range []string{"#GSI1PK = :s", "#GSI1PK = :s AND #GSI1SK > :hel", "#GSI1PK = :s AND begins_with(#GSI1SK, :hel)", "#PK = :s", "#GSI1PK = :hel", "#GSI1PK = :s AND #GSI1SK = :n"} {
		run(first, key)
	}
	for _, key := range []string{"#GSI2PK = :s", "#GSI2PK = :s AND #GSI2SK > :one", "#GSI2PK = :s AND #GSI2SK BETWEEN :neg AND :one", "#GSI2PK = :s AND #GSI2SK = :s", "#GSI2PK = :s AND begins_with(#GSI2SK, :one)"} {
		run(second, key)
	}
	for _, in := range []dynamodb.QueryInput{
		{FilterExpression: aws.String("#n > :one")},
		{FilterExpression: aws.String("#SK > :s")},
		{FilterExpression: aws.String("attribute_exists(#PK)")},
		{FilterExpression: aws.String("")},
		{FilterExpression: aws.String("#n > :one"), Limit: aws.Int32(3)},
		{Select: types.SelectCount},
		{Select: types.SelectCount, Limit: aws.Int32(1)},
		{Limit: aws.Int32(0)},
		{Limit: aws.Int32(100)},
		{Limit: aws.Int32(2)},
		{Limit: aws.Int32(1)},
		{ScanIndexForward: aws.Bool(false)},
		{ScanIndexForward: aws.Bool(false), Limit: aws.Int32(1)},
		{ConsistentRead: aws.Bool(true)},
		{IndexName: aws.String("GSI9")},
		{ExclusiveStartKey: keyOf("hello", "hello")},
		{ExclusiveStartKey: item{"PK": str("p")}},
		{ExclusiveStartKey: keyOf("hello", "i")},
		{ExclusiveStartKey: keyOf("other", "i")},
		{ExclusiveStartKey: item{}},
	} {
		run(in, "#PK = :s")
	}
	for _, in := range []dynamodb.QueryInput{{ConsistentRead: aws.Bool(true)}, {FilterExpression: aws.String("#n > :one")}, {ExclusiveStartKey: keyOf("p", "s01")}, {Select: types.SelectAllAttributes}} {
		in.IndexName = first.IndexName
		run(in, "#GSI1PK = :s")
		in.IndexName = second.IndexName
		run(in, "#GSI2PK = :s")
	}
	for _, in := range []dynamodb.QueryInput{main, first, second} {
		for _, forward := range []bool{true, false} {
			p.pages(ctx, t, in, forward)
		}
	}
}

// pages reads a whole partition in pages of 5.
func (p *pair) pages(ctx context.Context, t *testing.T, in dynamodb.QueryInput, forward bool) {
	t.Helper()
	p.do(ctx, t, "pages of "+aws.ToString(in.IndexName), func(ctx context.Context, c client) (any, error) {
		in, hash, v := in, "PK", ":p"
		if in.IndexName != nil {
			hash, v = *in.IndexName+"PK", ":s"
		}
		in.TableName, in.Limit, in.ScanIndexForward, in.KeyConditionExpression = p.table, aws.Int32(5), &forward, aws.String("#k = "+v)
		in.ExpressionAttributeNames = map[string]string{"#k": hash}
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":p": str("p"), ":s": str("hello")}
		if v == ":p" {
			delete(in.ExpressionAttributeValues, ":s")
		} else {
			delete(in.ExpressionAttributeValues, ":p")
		}
		var pages []any
		for {
			out, err := c.Query(ctx, &in)
			if err != nil {
				return nil, err
			}
			pages = append(pages, slices.Clone(out.Items), out.Count, out.ScannedCount, out.LastEvaluatedKey)
			in.ExclusiveStartKey = out.LastEvaluatedKey
			if in.ExclusiveStartKey == nil {
				return pages, nil
			}
		}
	})
}
