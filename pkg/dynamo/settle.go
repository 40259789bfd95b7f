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

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Settle implements limiter.Store by one conditional write. It is sent again while
// its outcome is not known, as the budget of a decision and the context allow: an
// owner that finds its own mark has won. Expired is what has expired by now, the
// caller's clock as it is: the reservation was given a time by clocks like it.
//
// A mark is in no index, so that a settlement costs one write unit, also one that is
// lost: DynamoDB bills a condition that does not hold as the write.
func (s *Store) Settle(ctx context.Context, now time.Time, m limiter.Mark) (bool, error) {
	ctx, end, err := s.enter(ctx, s.cfg.Budget)
	if err != nil {
		return false, err
	}
	defer end()
	if err := limiter.CheckMark(m); err != nil {
		return false, err
	}
	if !now.Before(m.Expires) {
		return false, nil
	}
	sp, err := s.use(ctx, m.Namespace)
	if err != nil {
		return false, err
	}
	k := schema.MarkKey(sp.id, m.ID)
	made, found, err := s.claim(ctx, schema.MarkItem(k, m), s.cfg.Attempt)
	if err != nil {
		return false, fmt.Errorf("settling a reservation, item %v of table %s: %w", k, s.cfg.Table, err)
	}
	if made {
		return true, nil
	}
	owner, err := schema.ParseMark(s.cfg.Table, k, found)
	return err == nil && owner == m.Owner, err
}

// Secret implements limiter.Store by one conditional write, whose refusal brings the
// secret that is there. No decision waits for it: it takes as long as a change may,
// for all that a message takes.
func (s *Store) Secret(ctx context.Context, name string, candidate []byte) ([]byte, error) {
	ctx, end, err := s.enter(ctx, changeTimeout)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := limiter.CheckSecret(name, candidate); err != nil {
		return nil, err
	}
	k, secret := schema.SecretKey(name), slices.Clone(candidate)
	made, found, err := s.claim(ctx, schema.SecretItem(k, secret, s.cfg.Now()), changeTimeout)
	if err != nil {
		return nil, fmt.Errorf("secret %s, item %v of table %s: %w", name, k, s.cfg.Table, err)
	}
	if made {
		return secret, nil
	}
	return schema.ParseSecret(s.cfg.Table, k, found)
}

// enter begins a call of its own, outside of any lane: the context that it returns is
// bounded by a budget, and ends when Close gives up. The caller calls end.
func (s *Store) enter(ctx context.Context, budget time.Duration) (bounded context.Context, end func(), err error) {
	if err := s.begin(); err != nil {
		return nil, nil, err
	}
	if err := awsdb.ContextError(ctx); err != nil {
		s.work.Done()
		return nil, nil, err
	}
	bounded, cancel := s.loop.Within(ctx, budget)
	unhook := context.AfterFunc(s.stopped, cancel)
	return bounded, func() {
		unhook()
		cancel()
		s.work.Done()
	}, nil
}

// claim puts an item unless there is one with its key, and says which: made, or what
// was found. The put is sent again until that is known, as long as the context allows;
// one whose reply was lost finds its own item. Each message may take attempt.
func (s *Store) claim(ctx context.Context, item map[string]types.AttributeValue, attempt time.Duration) (made bool, found map[string]types.AttributeValue, err error) {
	in := &dynamodb.PutItemInput{
		TableName: &s.cfg.Table, Item: item,
		ConditionExpression:                 aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames:            map[string]string{"#pk": schema.AttrPK},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	inDoubt := false
	for try := 1; ; try++ {
		err := s.putOnce(ctx, in, attempt)
		if found, refused := awsdb.ConditionItem(err); err == nil || refused {
			return err == nil, found, nil
		}
		err = awsdb.Translate(err)
		uncertain := errors.Is(err, limiter.ErrUncertain)
		inDoubt = inDoubt || uncertain
		if (uncertain || awsdb.Retryable(err)) && awsdb.Pause(ctx, s.loop, try) == nil {
			continue
		}
		if inDoubt && !uncertain {
			err = fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
		}
		return false, nil, err
	}
}

func (s *Store) putOnce(ctx context.Context, in *dynamodb.PutItemInput, attempt time.Duration) error {
	ctx, cancel := s.loop.Within(ctx, attempt)
	defer cancel()
	_, err := s.client.PutItem(ctx, in)
	return err
}
