package changestream

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

var _ aggregator.Splits = (*Stream)(nil)

// errPlace says that something else is where the other half of a split belongs.
var errPlace = errors.New("another item is in the place of a new shard")

// FinishSplit implements aggregator.Splits by the writes with which a replica finishes a split: both
// are the same whoever makes them, and have conditions.
func (s *Stream) FinishSplit(ctx context.Context, item string) (done bool, err error) {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	k := schema.StateKey(item)
	done, err = s.finishSplit(ctx, k)
	if err != nil {
		return false, fmt.Errorf("the split of %s: %w", k, err)
	}
	return done, nil
}

func (s *Stream) finishSplit(ctx context.Context, k schema.Key) (done bool, err error) {
	of, err := schema.BucketOf(k)
	if err != nil {
		return false, fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: k.Attributes(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return false, awsdb.TranslateRead(err)
	}
	if len(out.Item) == 0 {
		return false, nil
	}
	b, err := schema.ParseBucket(s.table, k, out.Item, nil)
	if err != nil {
		return false, fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	if !b.Shard.Moving || b.Old != nil { // replicas finish one of an older form
		return false, nil
	}
	if err := s.makeHalf(ctx, of.Namespace, k, b, out.Item); err != nil {
		return false, err
	}
	const unit = 1024
	w, err := plan.Clear(b, int64(b.Size+unit-1)/unit)
	if err != nil {
		return false, fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	_, err = s.client.UpdateItem(ctx, w.Update(s.table, k))
	if _, refused := awsdb.ConditionItem(err); refused { // a write came between: its record tells of the split again
		return false, nil
	}
	if err != nil {
		return false, awsdb.Translate(err)
	}
	return true, nil
}

// makeHalf makes the other half of a split, unless it is there.
func (s *Stream) makeHalf(ctx context.Context, ns string, k schema.Key, b *schema.Bucket, item map[string]types.AttributeValue) error {
	of, index, err := schema.BucketOfItem(s.table, k, item)
	if err != nil {
		return fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	if schema.BucketKey(ns, of.Entity, of.Resource, of.Variant, index) != k {
		return fmt.Errorf("%w: the item lacks its names in full; a replica that uses the bucket finishes it", limiter.ErrInvalid)
	}
	made, err := plan.Make(b)
	if err != nil {
		return fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	_, err = s.client.PutItem(ctx, plan.PutMade(s.table, made, schema.NewBucketItem(ns, of, made.Shard.Index)))
	found, refused := awsdb.ConditionItem(err)
	if !refused {
		if err != nil {
			return awsdb.Translate(err)
		}
		return nil
	}
	there, err := schema.ParseBucket(s.table, schema.BucketKey(ns, of.Entity, of.Resource, of.Variant, made.Shard.Index), found, nil)
	if err == nil && there.Shard.Epoch < made.Shard.Epoch {
		err = errPlace
	}
	if err != nil {
		return fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	return nil
}
