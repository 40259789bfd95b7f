package dynamo_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// lateWrites is a client whose writes of an aggregator arrive after something else has happened.
type lateWrites struct {
	*dynamodb.Client

	once   sync.Once
	before func()
}

func (c *lateWrites) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	c.once.Do(c.before)
	return c.Client.PutItem(ctx, in, opts...)
}

func (c *lateWrites) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.once.Do(c.before)
	return c.Client.TransactWriteItems(ctx, in, opts...)
}

// lateStream returns a table, and a stream of it whose first write of a split arrives after before has run.
func lateStream(t *testing.T, before func(client *dynamodb.Client, table string)) (server *dynamotest.Server, table string, late *dynamo.Stream) {
	t.Helper()
	server, table = dynamotest.Start(t), dynamotest.TableName(t)
	client := server.Client(t)
	if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	streams, err := dynamo.NewStreamsClient(t.Context(), dynamo.ClientConfig{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	late, err = dynamo.OpenStream(t.Context(), &lateWrites{Client: client, before: func() { before(client, table) }}, streams, table, nil)
	if err != nil {
		t.Fatal(err)
	}
	return server, table, late
}

// While a write of an aggregator is under way a bucket may be purged, or its second half merged. It then
// stays as it is: the write would bring back tokens.
func TestALateSplitBringsNothingBack(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(t *testing.T, client *dynamodb.Client, table string)
		items  int
	}{
		"purged":        {before: deleteBuckets, items: 0},
		"made and gone": {before: finishAndDrop, items: 1},
	} {
		t.Run(name, func(t *testing.T) {
			server, table, late := lateStream(t, func(client *dynamodb.Client, table string) { tt.before(t, client, table) })
			splitHalfway(t, server, table)
			client := server.Client(t)
			pk := partitionKey(t, bucketItems(t, client, table)[0])
			if done, err := late.FinishSplit(t.Context(), pk); done || err != nil {
				t.Errorf("FinishSplit = %t, %v, want that it did nothing", done, err)
			}
			if items := bucketItems(t, client, table); len(items) != tt.items {
				t.Errorf("%d items, want %d: %v", len(items), tt.items, items)
			}
		})
	}
}

// deleteBuckets deletes all items of buckets, as a purge does.
func deleteBuckets(t *testing.T, client *dynamodb.Client, table string) {
	t.Helper()
	for _, item := range bucketItems(t, client, table) {
		deleteBucket(t, client, table, item)
	}
}

// finishAndDrop finishes the split, and deletes the second half, as its ttl does once it is merged.
func finishAndDrop(t *testing.T, client *dynamodb.Client, table string) {
	t.Helper()
	streams, err := dynamo.NewStreamsClient(t.Context(), dynamo.ClientConfig{Endpoint: aws.ToString(client.Options().BaseEndpoint)})
	if err != nil {
		t.Fatal(err)
	}
	other, err := dynamo.OpenStream(t.Context(), client, streams, table, nil)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := other.FinishSplit(t.Context(), partitionKey(t, bucketItems(t, client, table)[0])); !done || err != nil {
		t.Errorf("FinishSplit = %t, %v", done, err)
	}
	for _, item := range bucketItems(t, client, table) {
		if strings.HasSuffix(partitionKey(t, item), "#1") {
			deleteBucket(t, client, table, item)
		}
	}
}

func partitionKey(t *testing.T, item map[string]types.AttributeValue) string {
	t.Helper()
	pk, ok := item["PK"].(*types.AttributeValueMemberS)
	if !ok {
		t.Fatalf("an item without a key: %v", item)
	}
	return pk.Value
}

func deleteBucket(t *testing.T, client *dynamodb.Client, table string, item map[string]types.AttributeValue) {
	t.Helper()
	key := map[string]types.AttributeValue{"PK": item["PK"], "SK": item["SK"]}
	if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key}); err != nil {
		t.Error(err)
	}
}
