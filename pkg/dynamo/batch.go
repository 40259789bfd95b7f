package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	maxBatchGet   = 100 // keys of a BatchGetItem
	maxBatchWrite = 25  // items of a BatchWriteItem
	// maxReadTries bounds the tries of a request that DynamoDB throttles or does in
	// part, for callers whose context has no deadline: about 2 s.
	maxReadTries = 12
	firstBackoff = 4 * time.Millisecond
	maxBackoff   = 400 * time.Millisecond
)

// readItems reads the items of different keys, each as it is when it is read:
// what was written before is seen. One that does not exist is missing in the
// answer; one that DynamoDB leaves out of its answer for want of capacity is asked
// for again, and is an error in the end, never taken for missing.
func readItems(ctx context.Context, client Client, table string, keys []key) (map[key]map[string]types.AttributeValue, error) {
	found := make(map[key]map[string]types.AttributeValue, len(keys))
	for chunk := range slices.Chunk(keys, maxBatchGet) {
		pending := make([]map[string]types.AttributeValue, len(chunk))
		for i, k := range chunk {
			pending[i] = k.attributes()
		}
		for try := 0; len(pending) > 0; {
			out, err := client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				table: {Keys: pending, ConsistentRead: aws.Bool(true)},
			}})
			if err != nil {
				if err = translateRead(err); !retryRead(ctx, &try, err) {
					return nil, fmt.Errorf("reading %d items of table %s: %w", len(pending), table, err)
				}
				continue
			}
			for _, item := range out.Responses[table] {
				k, err := itemKey(table, item)
				if err != nil {
					return nil, err
				}
				found[k] = item
			}
			if pending = out.UnprocessedKeys[table].Keys; len(pending) > 0 && !retryRead(ctx, &try, limiter.ErrUnavailable) {
				return nil, leftOver(ctx, table, len(pending), len(chunk))
			}
		}
	}
	return found, nil
}

// deleteItems deletes items; it may be repeated.
func deleteItems(ctx context.Context, client Client, table string, keys []key) error {
	for chunk := range slices.Chunk(keys, maxBatchWrite) {
		pending := make([]types.WriteRequest, len(chunk))
		for i, k := range chunk {
			pending[i] = types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: k.attributes()}}
		}
		for try := 0; len(pending) > 0; {
			out, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: pending}})
			if err != nil {
				if err = translate(err); !retryRead(ctx, &try, err) {
					return fmt.Errorf("deleting %d items of table %s: %w", len(pending), table, err)
				}
				continue
			}
			if pending = out.UnprocessedItems[table]; len(pending) > 0 && !retryRead(ctx, &try, limiter.ErrUnavailable) {
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

// retryRead waits and returns true if a request that may be repeated should be,
// after the error; try counts the tries. In an outage it is not: a decision would wait
// for nothing.
func retryRead(ctx context.Context, try *int, err error) bool {
	return retryReadBy(ctx, goroutines{}, try, passes(err))
}

func retryReadBy(ctx context.Context, by loop, try *int, worth bool) bool {
	if *try++; *try >= maxReadTries || !worth {
		return false
	}
	return pauseBy(ctx, by, *try) == nil
}

// mayPass reports whether the same request may succeed later.
func mayPass(err error) bool {
	return errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrUncertain)
}

// pause waits before a try, longer each time and by chance, unless the context
// would be done before it ends.
func pause(ctx context.Context, try int) error { return pauseBy(ctx, goroutines{}, try) }

func pauseBy(ctx context.Context, by loop, try int) error {
	d := min(firstBackoff<<min(try-1, 10), maxBackoff)
	return by.sleep(ctx, d/2+time.Duration(by.draw(int64(d/2))))
}
