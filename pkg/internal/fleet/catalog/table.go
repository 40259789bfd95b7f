package catalog

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	maxBatchGet   = 100 // keys of a BatchGetItem
	maxBatchWrite = 25  // items of a BatchWriteItem
)

// table is the table of a store, as the catalog reads and writes it: requests that are
// throttled, or done in part, are sent again.
type table struct {
	items awsdb.Items
	name  string
	loop  awsdb.Loop // by which it waits between tries
}

// read reads the items of different keys, each with strong consistency. One that does not
// exist is missing in the answer. One that DynamoDB leaves out for want of capacity is asked
// for again, and is an error in the end. It never counts as missing.
func (t *table) read(ctx context.Context, keys []schema.Key) (map[schema.Key]map[string]types.AttributeValue, error) {
	found := make(map[schema.Key]map[string]types.AttributeValue, len(keys))
	for chunk := range slices.Chunk(keys, maxBatchGet) {
		pending := make([]map[string]types.AttributeValue, len(chunk))
		for i, k := range chunk {
			pending[i] = k.Attributes()
		}
		for try := 0; len(pending) > 0; {
			out, err := t.items.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				t.name: {Keys: pending, ConsistentRead: aws.Bool(true)},
			}})
			if err != nil {
				if err = awsdb.TranslateRead(err); !awsdb.RetryRead(ctx, t.loop, &try, err) {
					return nil, fmt.Errorf("reading %d items of table %s: %w", len(pending), t.name, err)
				}
				continue
			}
			for _, item := range out.Responses[t.name] {
				k, err := schema.ItemKey(t.name, item)
				if err != nil {
					return nil, err
				}
				found[k] = item
			}
			pending = out.UnprocessedKeys[t.name].Keys
			if len(pending) > 0 && !awsdb.RetryRead(ctx, t.loop, &try, limiter.ErrUnavailable) {
				return nil, leftOver(ctx, t.name, len(pending), len(chunk))
			}
		}
	}
	return found, nil
}

// delete deletes items; it may be repeated.
func (t *table) delete(ctx context.Context, keys []schema.Key) error {
	for chunk := range slices.Chunk(keys, maxBatchWrite) {
		pending := make([]types.WriteRequest, len(chunk))
		for i, k := range chunk {
			pending[i] = types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: k.Attributes()}}
		}
		for try := 0; len(pending) > 0; {
			out, err := t.items.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{t.name: pending}})
			if err != nil {
				if err = awsdb.Translate(err); !awsdb.RetryRead(ctx, t.loop, &try, err) {
					return fmt.Errorf("deleting %d items of table %s: %w", len(pending), t.name, err)
				}
				continue
			}
			pending = out.UnprocessedItems[t.name]
			if len(pending) > 0 && !awsdb.RetryRead(ctx, t.loop, &try, limiter.ErrUnavailable) {
				return leftOver(ctx, t.name, len(pending), len(chunk))
			}
		}
	}
	return nil
}

// deleteAll deletes the items that a query finds.
func (t *table) deleteAll(ctx context.Context, q *dynamodb.QueryInput, deleted func(int)) error {
	var batch []schema.Key
	flush := func() error {
		if err := t.delete(ctx, batch); err != nil {
			return err
		}
		deleted(len(batch))
		batch = batch[:0]
		return nil
	}
	for item, err := range t.scan(ctx, q) {
		if err != nil {
			return err
		}
		k, err := schema.ItemKey(t.name, item)
		if err != nil {
			return err
		}
		batch = append(batch, k)
		if len(batch) == maxBatchWrite {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return flush()
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

// scan runs a query to its end, page by page, unless the caller stops it. After
// an error, which is the last that it yields, the items are incomplete.
func (t *table) scan(ctx context.Context, q *dynamodb.QueryInput) iter.Seq2[map[string]types.AttributeValue, error] {
	return func(yield func(map[string]types.AttributeValue, error) bool) {
		page := *q
		for try := 0; ; {
			out, err := t.items.Query(ctx, &page)
			if err != nil {
				if err = awsdb.TranslateRead(err); !awsdb.RetryRead(ctx, t.loop, &try, err) {
					yield(nil, fmt.Errorf("query of table %s: %w", *q.TableName, err))
					return
				}
				continue
			}
			for _, item := range out.Items {
				if !yield(item, nil) {
					return
				}
			}
			if len(out.LastEvaluatedKey) == 0 {
				return
			}
			page.ExclusiveStartKey, try = out.LastEvaluatedKey, 0
		}
	}
}
