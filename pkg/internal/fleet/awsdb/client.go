package awsdb

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Client is the part of DynamoDB that the store uses; *dynamodb.Client is one. It must not
// retry by itself: a write that was applied and whose reply was lost would be applied
// twice. [NewClient] returns a client that does not retry.
type Client interface {
	reader
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// reader is the part of DynamoDB that items of any server are read by, and that deletes several at once.
type reader interface {
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
}

// Items are the items of a table on any server. Writes are values, which each server has in its own language. The
// errors are those of [Client], and those of [CheckReply]. Like a client, they must not send a write again.
type Items interface {
	reader
	// Write makes one write. It returns the part of the item that the write asks for.
	Write(ctx context.Context, w *schema.ItemWrite) (image map[string]types.AttributeValue, err error)
	// Transact makes several writes, all or none. Those of a token are made once, however often they are sent; "" = none.
	Transact(ctx context.Context, token string, writes []*schema.ItemWrite) error
}

// ItemsOf returns the items of a table of DynamoDB.
func ItemsOf(client Client, table string) Items { return &dynamoItems{client, table} }

// dynamoItems are the items of a table of DynamoDB.
type dynamoItems struct {
	Client

	table string
}

// Write implements [Items].
func (d *dynamoItems) Write(ctx context.Context, w *schema.ItemWrite) (map[string]types.AttributeValue, error) {
	image, err := d.send(ctx, w)
	if err = CheckReply(w, image, err); err != nil { // also for programs that have no guard
		return nil, err
	}
	return image, nil
}

// send makes one write, and returns the attributes of its reply.
func (d *dynamoItems) send(ctx context.Context, w *schema.ItemWrite) (map[string]types.AttributeValue, error) {
	switch w.Kind {
	case schema.Put:
		out, err := d.PutItem(ctx, putting(d.table, w))
		if err != nil {
			return nil, err
		}
		return out.Attributes, nil
	case schema.Delete:
		out, err := d.DeleteItem(ctx, deleting(d.table, w))
		if err != nil {
			return nil, err
		}
		return out.Attributes, nil
	case schema.Update:
	}
	out, err := d.UpdateItem(ctx, updating(d.table, w))
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// Transact implements [Items].
func (d *dynamoItems) Transact(ctx context.Context, token string, writes []*schema.ItemWrite) error {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: make([]types.TransactWriteItem, len(writes))}
	for i, w := range writes {
		in.TransactItems[i] = transacting(d.table, w)
	}
	if token != "" {
		in.ClientRequestToken = aws.String(token)
	}
	_, err := d.TransactWriteItems(ctx, in)
	return CheckReply(writes, nil, err)
}
