package lane

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// exchange sends one copy of a message.
func (l sender) exchange(f *flight) (reply, error) {
	s := l.host
	ctx, cancel := s.cfg.Loop.Within(s.stopped, f.within)
	defer cancel()
	f.tries++
	f.sent = s.cfg.Now()
	s.health.sent(f.sent, f.within)
	got, err := l.transmit(ctx, f)
	s.health.ended(s.cfg.Now(), got.refused || isAnswer(err))
	return got, err
}

// isAnswer reports whether a message that ended in an error, or in none, had an answer of DynamoDB.
func isAnswer(err error) bool {
	if errors.Is(err, awsdb.ErrPaced) { // it was not sent
		return false
	}
	return err == nil || errors.Is(awsdb.KindOf(err), limiter.ErrInvalid) || awsdb.Retryable(err)
}

// transmit makes the call of a message.
func (l sender) transmit(ctx context.Context, f *flight) (reply, error) {
	s := l.host
	switch {
	case f.other != nil:
		return f.other.send(ctx)
	case f.write == nil || f.asks:
		return l.get(ctx, l.key)
	case f.write.Creates():
		return l.put(ctx, f.write.Put(s.cfg.Table, schema.NewBucketItem(l.site.Namespace, l.site.Bucket, l.index)))
	}
	out, err := s.cfg.Client.UpdateItem(ctx, f.write.Update(s.cfg.Table, l.key))
	if err != nil {
		return l.answered(nil, err)
	}
	return l.answered(out.Attributes, nil)
}

// get reads an item.
func (l sender) get(ctx context.Context, key schema.Key) (reply, error) {
	l.host.Counters.Reads.Add(1)
	out, err := l.host.cfg.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(l.host.cfg.Table), Key: key.Attributes(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return reply{}, err
	}
	return reply{item: out.Item}, nil
}

// put makes an item.
func (l sender) put(ctx context.Context, in *dynamodb.PutItemInput) (reply, error) {
	_, err := l.host.cfg.Client.PutItem(ctx, in)
	return l.answered(in.Item, err)
}

// answered is the reply to a write.
func (l sender) answered(item map[string]types.AttributeValue, err error) (reply, error) {
	if !errors.Is(err, awsdb.ErrOutage) && !errors.Is(err, awsdb.ErrPaced) {
		l.host.Counters.Writes.Add(1)
	}
	if found, refused := awsdb.ConditionItem(err); refused {
		l.host.Counters.Refused.Add(1)
		return reply{item: found, refused: true}, nil
	}
	return reply{item: item}, err
}
