package dynamo

import (
	"errors"

	table "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

var (
	errNoContent = errors.New("the record has no content")
	errNoImage   = errors.New("the record lacks an image of the item")
	errNoPlace   = errors.New("the record has no sequence number")
)

// readRecord reads a record of the stream of a table. A record that cannot be read has a problem, and
// the key as far as it is there.
func readRecord(of string, from *types.Record) aggregator.Record {
	d := from.Dynamodb
	if d == nil {
		return aggregator.Record{Problem: errNoContent}
	}
	r := aggregator.Record{Sequence: aggregator.Sequence(text(d.SequenceNumber))}
	if d.ApproximateCreationDateTime != nil {
		r.Time = d.ApproximateCreationDateTime.UTC()
	}
	k, err := schema.ItemKey(of, attributes(d.Keys))
	r.Key = k.String()
	switch {
	case err != nil:
		r.Problem = err
	case !schema.IsBucket(k):
		r.Other, r.Expired = true, expired(of, k, from)
	default:
		r.Item = k.PK
		r.Problem = readBucket(of, &r, k, from)
	}
	return r
}

// readBucket reads a record of a bucket's item.
func readBucket(of string, r *aggregator.Record, k schema.Key, from *types.Record) (err error) {
	if r.Bucket, err = schema.BucketOf(k); err != nil {
		return err
	}
	if (from.EventName == types.OperationTypeRemove) != (len(from.Dynamodb.NewImage) == 0) || (from.EventName == types.OperationTypeInsert) != (len(from.Dynamodb.OldImage) == 0) {
		return errNoImage
	}
	if _, ok := schema.NewPosition(r.Sequence); !ok {
		return errNoPlace
	}
	for _, image := range []struct {
		from map[string]types.AttributeValue
		to   **aggregator.Image
	}{{from.Dynamodb.OldImage, &r.Old}, {from.Dynamodb.NewImage, &r.New}} {
		if len(image.from) == 0 {
			continue
		}
		item := attributes(image.from)
		if *image.to, err = schema.BucketImage(of, k, item); err != nil {
			return err
		}
		if r.Names, err = schema.BucketNames(of, k, item); err != nil {
			return err
		}
	}
	return nil
}

// attributes returns the attributes of a record that are numbers, strings or binary.
func attributes(from map[string]types.AttributeValue) map[string]table.AttributeValue {
	to := make(map[string]table.AttributeValue, len(from))
	for name, v := range from {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			to[name] = &table.AttributeValueMemberS{Value: v.Value}
		case *types.AttributeValueMemberN:
			to[name] = &table.AttributeValueMemberN{Value: v.Value}
		case *types.AttributeValueMemberB:
			to[name] = &table.AttributeValueMemberB{Value: v.Value}
		default:
			to[name] = &table.AttributeValueMemberNULL{Value: true}
		}
	}
	return to
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
