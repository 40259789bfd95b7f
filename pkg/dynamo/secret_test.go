package dynamo_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// identified gives the table an id, as DynamoDB does and DynamoDB Local does not.
type identified struct {
	dynamo.Client

	id string
}

func (c identified) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := c.Client.DescribeTable(ctx, in, opts...)
	if err == nil && c.id != "" {
		out.Table.TableId = &c.id
	}
	return out, err
}

// streamed returns all that the stream of a table has, as text, and the images of the item
// with a sort key.
func streamed(t *testing.T, endpoint, table, sk string) (all string, images []map[string]streamtypes.AttributeValue) {
	t.Helper()
	var text strings.Builder
	client, err := dynamo.NewStreamsClient(t.Context(), dynamo.ClientConfig{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: &table})
	if err != nil || len(list.Streams) != 1 {
		t.Fatalf("%+v, %v; want one stream", list, err)
	}
	arn := list.Streams[0].StreamArn
	stream, err := client.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range stream.StreamDescription.Shards {
		at, err := client.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
		if err != nil {
			t.Fatal(err)
		}
		for iterator := at.ShardIterator; iterator != nil; {
			out, err := client.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range out.Records {
				for _, image := range []map[string]streamtypes.AttributeValue{r.Dynamodb.OldImage, r.Dynamodb.NewImage} {
					for name, v := range image {
						_, _ = fmt.Fprintf(&text, "%s %v\n", name, v)
						if b, ok := v.(*streamtypes.AttributeValueMemberB); ok {
							_, _ = text.Write(b.Value)
						}
					}
					if v, ok := image["SK"].(*streamtypes.AttributeValueMemberS); ok && v.Value == sk {
						images = append(images, image)
					}
				}
			}
			iterator = out.NextShardIterator
			if len(out.Records) == 0 {
				break
			}
		}
	}
	return text.String(), images
}

// The real stream of a table has a record of the reservation key's item, and the key in no image.
// A reader of the stream without the id of the table cannot decrypt it.
func TestSecretsAreNotReadableInTheStream(t *testing.T) {
	server, f := dynamotest.Start(t), newFed(t)
	first := newStore(t, identified{f.client, "d0f1"}, func(cfg *dynamo.Config) { cfg.Table = f.table })
	defer closing(t, first)
	key := bytes.Repeat([]byte("0123456789abcdef"), 2)
	wantSecret(t, first, key, key)
	second := newStore(t, identified{f.client, "d0f1"}, func(cfg *dynamo.Config) { cfg.Table = f.table })
	defer closing(t, second)
	wantSecret(t, second, make([]byte, len(key)), key)
	text, images := streamed(t, server.URL, f.table, "#SECRET")
	if len(images) != 1 {
		t.Fatalf("%d images of the key's item, want 1", len(images))
	}
	if bytes.Contains([]byte(text), key) || bytes.Contains([]byte(text), key[:16]) {
		t.Errorf("the stream has the key:\n%s", text)
	}
	other := bytes.Repeat([]byte("x"), len(key)) // of a table that has the same items and another id
	third := newStore(t, identified{f.client, "d0f2"}, func(cfg *dynamo.Config) { cfg.Table = f.table })
	defer closing(t, third)
	wantSecret(t, third, other, other)
	wantSecret(t, third, key, other)
}

func wantSecret(t *testing.T, s limiter.Store, candidate, want []byte) {
	t.Helper()
	got, err := s.Secret(t.Context(), "reservation-key", candidate)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the secret is %q, %v; want %q", got, err, want)
	}
}
