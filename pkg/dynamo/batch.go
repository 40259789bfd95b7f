package dynamo

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	maxBatchGet   = 100 // keys of a BatchGetItem
	maxBatchWrite = 25  // items of a BatchWriteItem
)

// readItems reads the items of different keys, each as it is when it is read:
// what was written before is seen. One that does not exist is missing in the
// answer; one that DynamoDB leaves out of its answer for want of capacity is asked
// for again, and is an error in the end, never taken for missing.
func readItems(ctx context.Context, client Client, table string, keys []schema.Key) (map[schema.Key]map[string]types.AttributeValue, error) {
	found := make(map[schema.Key]map[string]types.AttributeValue, len(keys))
	for chunk := range slices.Chunk(keys, maxBatchGet) {
		pending := make([]map[string]types.AttributeValue, len(chunk))
		for i, k := range chunk {
			pending[i] = k.Attributes()
		}
		for try := 0; len(pending) > 0; {
			out, err := client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				table: {Keys: pending, ConsistentRead: aws.Bool(true)},
			}})
			if err != nil {
				if err = awsdb.TranslateRead(err); !awsdb.RetryRead(ctx, awsdb.Goroutines{}, &try, err) {
					return nil, fmt.Errorf("reading %d items of table %s: %w", len(pending), table, err)
				}
				continue
			}
			for _, item := range out.Responses[table] {
				k, err := schema.ItemKey(table, item)
				if err != nil {
					return nil, err
				}
				found[k] = item
			}
			if pending = out.UnprocessedKeys[table].Keys; len(pending) > 0 && !awsdb.RetryRead(ctx, awsdb.Goroutines{}, &try, limiter.ErrUnavailable) {
				return nil, leftOver(ctx, table, len(pending), len(chunk))
			}
		}
	}
	return found, nil
}

// deleteItems deletes items; it may be repeated.
func deleteItems(ctx context.Context, client Client, table string, keys []schema.Key) error {
	for chunk := range slices.Chunk(keys, maxBatchWrite) {
		pending := make([]types.WriteRequest, len(chunk))
		for i, k := range chunk {
			pending[i] = types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: k.Attributes()}}
		}
		for try := 0; len(pending) > 0; {
			out, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: pending}})
			if err != nil {
				if err = awsdb.Translate(err); !awsdb.RetryRead(ctx, awsdb.Goroutines{}, &try, err) {
					return fmt.Errorf("deleting %d items of table %s: %w", len(pending), table, err)
				}
				continue
			}
			if pending = out.UnprocessedItems[table]; len(pending) > 0 && !awsdb.RetryRead(ctx, awsdb.Goroutines{}, &try, limiter.ErrUnavailable) {
				return leftOver(ctx, table, len(pending), len(chunk))
			}
		}
	}
	return nil
}

// leftOver is the error of a batch that was done in part until the tries or the
// time ran out.
func leftOver(ctx context.Context, table string, left, all int) error {
	err := fmt.Errorf("%w: table %s is throttled: %d of %d items of a batch were left over", limiter.ErrUnavailable, table, left, all)
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", err, ctx.Err())
	}
	return err
}
