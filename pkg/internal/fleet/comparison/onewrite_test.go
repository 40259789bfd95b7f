package comparison_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// oneWrite is a limiter that writes once for each decision, as quick limiters on DynamoDB
// do. It takes from the stored tokens on the condition that they are enough, and reads
// nothing. When they are not, the refused write brings the item. Then a write adds the
// refill since, on the condition that no other write has added any. It is tried again
// with the newest item, after a random pause, longer each time.
//
// It cannot see for how long the bucket was full before a take, and adds the refill of
// that time too: after a pause it admits up to twice the capacity. In an exact form
// every write depends on the one before, and hardly any succeeds when thousands a second
// are under way.
type oneWrite struct {
	client *network
	params tokenbucket.Params
}

const (
	maxTries     = 12 // of a decision, before it is given up
	longestPause = 50 * time.Millisecond
)

// backoff is how long is waited at most before a try: nothing before the first, then
// twice as long each time.
func backoff(try int) time.Duration {
	if try == 0 {
		return 0
	}
	return min(medianLatency<<(try-1), longestPause)
}

var errTries = errors.New("the item had changed every time") //nolint:gochecknoglobals // a sentinel

func itemKey() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "one"}, "SK": &types.AttributeValueMemberS{Value: "#STATE"}}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// create puts a full bucket.
func (o *oneWrite) create(ctx context.Context) error {
	item := itemKey()
	item["tk"], item["rf"] = number(o.params.Capacity), number(time.Now().UnixMilli())
	_, err := o.client.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(tableName), Item: item})
	return err
}

// take takes a token.
func (o *oneWrite) take(ctx context.Context) (bool, error) {
	const cost = limiter.Milli
	in := update("SET #tk = #tk - :cost", "#tk >= :cost", map[string]types.AttributeValue{":cost": number(cost)})
	for try := range maxTries {
		if err := pause(ctx, o.client.draw(backoff(try))); err != nil {
			return false, err
		}
		b, err := o.write(ctx, in)
		if err == nil {
			return true, nil
		}
		if refused := (*types.ConditionalCheckFailedException)(nil); !errors.As(err, &refused) {
			return false, err
		}
		full := b.Refill(o.params, time.Now().UnixMilli())
		if full.Tokens < cost {
			return false, nil
		}
		if b.Tokens < cost {
			more := full.Tokens - b.Tokens
			in = update("SET #tk = #tk + :more, #rf = :now", "#rf = :seen AND #tk >= :least", map[string]types.AttributeValue{
				":more": number(more - cost), ":now": number(full.Refilled), ":seen": number(b.Refilled), ":least": number(cost - more),
			})
		} else {
			in = update("SET #tk = #tk - :cost", "#tk >= :cost", map[string]types.AttributeValue{":cost": number(cost)})
		}
	}
	return false, errTries
}

// write sends a write; with its refusal comes the bucket that refused it.
func (o *oneWrite) write(ctx context.Context, in *dynamodb.UpdateItemInput) (tokenbucket.Bucket, error) {
	_, err := o.client.UpdateItem(ctx, in)
	refused := (*types.ConditionalCheckFailedException)(nil)
	if !errors.As(err, &refused) {
		return tokenbucket.Bucket{}, err
	}
	b, unreadable := stored(refused.Item)
	if unreadable != nil {
		return b, unreadable
	}
	return b, err
}

func update(set, condition string, values map[string]types.AttributeValue) *dynamodb.UpdateItemInput {
	names := map[string]string{"#tk": "tk"}
	if _, refills := values[":now"]; refills {
		names["#rf"] = "rf"
	}
	return &dynamodb.UpdateItemInput{
		TableName: aws.String(tableName), Key: itemKey(),
		UpdateExpression: aws.String(set), ConditionExpression: aws.String(condition),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// stored is the bucket that an item holds. All limits of the scenarios refill whole
// millitokens in a millisecond, so that there is no remainder.
func stored(item map[string]types.AttributeValue) (tokenbucket.Bucket, error) {
	var got [2]int64
	for i, name := range []string{"tk", "rf"} {
		n, ok := item[name].(*types.AttributeValueMemberN)
		if !ok {
			return tokenbucket.Bucket{}, fmt.Errorf("the item has no number %s", name)
		}
		var err error
		if got[i], err = strconv.ParseInt(n.Value, 10, 64); err != nil {
			return tokenbucket.Bucket{}, fmt.Errorf("attribute %s: %w", name, err)
		}
	}
	return tokenbucket.Bucket{Tokens: got[0], Refilled: got[1]}, nil
}
