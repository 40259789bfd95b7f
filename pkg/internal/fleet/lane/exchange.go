package lane

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// exchange sends one copy of a message, one of a crowd.
func (s *host) exchange(m message, of *crowding) (reply, error) {
	c := m.core()
	ctx, cancel := s.cfg.Loop.Within(s.stopped, c.within)
	defer cancel()
	c.tries++
	c.sent = s.cfg.Now()
	s.health.sent(c.sent, c.within)
	got, err := m.send(ctx)
	ended, answered := s.cfg.Now(), got.refused || isAnswer(err)
	s.health.ended(ended, answered)
	if !waitsForOthers(m) {
		of.judge(ended, ended.Sub(c.sent), answered)
	}
	return got, err
}

// waitsForOthers reports whether the reply to a message may wait for a replica of the server: its round trip says little
// of the server itself.
func waitsForOthers(m message) bool {
	switch m := m.(type) {
	case *read:
		return false
	case *write:
		return m.write.Exact() && !m.write.Creates()
	}
	return true
}

// isAnswer reports whether a message that ended in an error, or in none, had an answer of DynamoDB.
func isAnswer(err error) bool {
	if errors.Is(err, awsdb.ErrPaced) { // it was not sent
		return false
	}
	return err == nil || errors.Is(awsdb.KindOf(err), limiter.ErrInvalid) || awsdb.Retryable(err)
}

// apply writes the item. behind says that the write was planned on others that are under way. A serial
// number does not identify the state that such a write finds.
func (l *item) apply(ctx context.Context, w *plan.Write, behind bool) (reply, error) {
	cfg := &l.host.cfg
	if w.Creates() {
		return l.put(ctx, w.Put(schema.NewBucketItem(l.site.Namespace, l.site.Bucket, l.index)))
	}
	update := w.Update(l.key)
	if cfg.Scripts && !behind { // rule: a write that was planned on one under way is answered with the item
		update.Known = w.After().Serial - 1
	}
	image, err := cfg.Items.Write(ctx, update)
	if err != nil {
		return l.answered(nil, err)
	}
	got, err := l.answered(image, nil)
	if cfg.Scripts && len(image) == 0 {
		got.item, got.left = nil, w.After()
	}
	return got, err
}

// get reads an item.
func (l *item) get(ctx context.Context, key schema.Key) (reply, error) {
	l.host.Counters.Reads.Add(1)
	out, err := l.host.cfg.Items.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(l.host.cfg.Table), Key: key.Attributes(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return reply{}, err
	}
	return reply{item: out.Item}, nil
}

// put makes an item, or changes the one that is there.
func (l *item) put(ctx context.Context, put *schema.ItemWrite) (reply, error) {
	image, err := l.host.cfg.Items.Write(ctx, put)
	if len(image) == 0 {
		image = put.Item
	}
	return l.answered(image, err)
}

// answered is the reply to a write.
func (l *item) answered(item map[string]types.AttributeValue, err error) (reply, error) {
	if !errors.Is(err, awsdb.ErrOutage) && !errors.Is(err, awsdb.ErrPaced) {
		l.host.Counters.Writes.Add(1)
	}
	if found, refused := awsdb.ConditionItem(err); refused {
		l.host.Counters.Refused.Add(1)
		return reply{item: found, refused: true}, nil
	}
	return reply{item: item}, err
}
