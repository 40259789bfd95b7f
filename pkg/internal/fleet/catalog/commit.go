package catalog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// commit sends a transaction until its outcome is known, as long as the context
// allows. Its token makes the server apply it once, however often it is sent.
func (t *table) commit(ctx context.Context, writes []*schema.ItemWrite) error {
	token := rand.Text()
	doubtful := false
	for try := 1; ; try++ {
		err := t.items.Transact(ctx, token, writes)
		of := awsdb.Translate(err)
		if err == nil || !awsdb.MayPass(of) { // such as limiter.ErrClosed
			return err
		}
		doubtful = doubtful || errors.Is(of, limiter.ErrUncertain)
		if !doubtful && awsdb.IsRefused(err) {
			return err
		}
		if awsdb.Pause(ctx, t.loop, try) == nil {
			continue
		}
		if doubtful {
			return fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
		}
		return err
	}
}

// claim makes a put such as [schema.PutNew], whose condition its own item does not meet. It returns
// that the item was made, or the item that it found. The put is sent again until its outcome is known,
// as long as the context allows. A put whose reply was lost finds its own item. Each message may take
// attempt.
func (t *table) claim(ctx context.Context, put *schema.ItemWrite, attempt time.Duration) (made bool, found map[string]types.AttributeValue, err error) {
	inDoubt := false
	for try := 1; ; try++ {
		err := t.putOnce(ctx, put, attempt)
		if found, refused := awsdb.ConditionItem(err); err == nil || refused {
			return err == nil, found, nil
		}
		err = awsdb.Translate(err)
		uncertain := errors.Is(err, limiter.ErrUncertain)
		inDoubt = inDoubt || uncertain
		if (uncertain || awsdb.Retryable(err)) && awsdb.Pause(ctx, t.loop, try) == nil {
			continue
		}
		if inDoubt && !uncertain {
			err = fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
		}
		return false, nil, err
	}
}

func (t *table) putOnce(ctx context.Context, put *schema.ItemWrite, attempt time.Duration) error {
	ctx, cancel := t.loop.Within(ctx, attempt)
	defer cancel()
	_, err := t.items.Write(ctx, put)
	return err
}
