package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

var _ aggregator.Splits = (*Stream)(nil)

// errPlace says that another item has the key of the other half of a split.
var errPlace = errors.New("another item has the key of a new shard")

// FinishSplit implements aggregator.Splits by the writes with which a replica finishes a split, in one
// transaction.
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
	out, err := s.items.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: k.Attributes(), ConsistentRead: aws.Bool(true)})
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
	if !b.Shard.Moving {
		return false, nil
	}
	made, err := s.half(of.Namespace, k, b, out.Item)
	if err != nil {
		return false, err
	}
	w, err := plan.Clear(b, b.WriteUnits())
	if err != nil {
		return false, fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	return s.apply(ctx, k, made, w)
}

// apply makes the other half of a split and notes that it is there, in one transaction. It rests on the
// state of the first half: a late one is refused, so it makes nothing in a bucket that was purged or
// merged since. Where the other half is there, only the note is left to write.
func (s *Stream) apply(ctx context.Context, k schema.Key, made *half, w *plan.Write) (done bool, err error) {
	put, update := plan.PutMade(made.state, made.item), w.Update(k)
	err = s.items.Transact(ctx, "", []*schema.ItemWrite{put, update})
	if changed, _ := awsdb.ReasonAt(err, 1); changed == awsdb.ConditionFailed { // a write came between: its record has the split again
		return false, nil
	}
	if refused, found := awsdb.ReasonAt(err, 0); refused == awsdb.ConditionFailed {
		if err := s.isMade(made, found); err != nil {
			return false, err
		}
		_, err = s.items.Write(ctx, update)
		if _, changed := awsdb.ConditionItem(err); changed {
			return false, nil
		}
	}
	if err != nil {
		return false, awsdb.Translate(err)
	}
	return true, nil
}

// half is the other half of a split, as it is made.
type half struct {
	key   schema.Key
	state *schema.Bucket
	item  map[string]types.AttributeValue // its keys and names
}

// half returns the other half of a split.
func (s *Stream) half(ns string, k schema.Key, b *schema.Bucket, item map[string]types.AttributeValue) (*half, error) {
	of, index, err := schema.BucketOfItem(s.table, k, item)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	if schema.BucketKey(ns, of, index) != k {
		return nil, fmt.Errorf("%w: the item lacks its names in full; a replica that uses the bucket finishes it", limiter.ErrInvalid)
	}
	made, err := plan.Make(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	other := made.Shard.Index
	return &half{key: schema.BucketKey(ns, of, other), state: made, item: schema.NewBucketItem(ns, of, other)}, nil
}

// isMade returns an error unless an item that is in the place of the other half is this one, or came of it.
func (s *Stream) isMade(made *half, found map[string]types.AttributeValue) error {
	there, err := schema.ParseBucket(s.table, made.key, found, nil)
	if err == nil && there.Shard.Epoch < made.state.Shard.Epoch {
		err = errPlace
	}
	if err != nil {
		return fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
	}
	return nil
}
