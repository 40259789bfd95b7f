package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// throttledLast is a table whose updates wait for a gate, and are throttled then.
type throttledLast struct {
	*dynamofake.DB

	gate chan struct{} // nil: updates do not wait
}

func (c *throttledLast) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if c.gate == nil {
		return c.DB.UpdateItem(ctx, in, o...)
	}
	<-c.gate
	return nil, &types.ProvisionedThroughputExceededException{}
}

// A reply that comes when Close has given up leaves nothing that waits for another write.
func TestCloseEndsWhatIsToBeWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &throttledLast{DB: newTable(t)}
		e := newEngine(t, db, patient)
		o := op(t, "e", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(1)})
		mustTake(t, e, true, o)
		db.gate = make(chan struct{})
		ended, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := e.Take(context.WithoutCancel(t.Context()), time.Now(), []limiter.Op{o})
			ended <- err
		}()
		synctest.Wait()
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Millisecond)
			defer cancel()
			closed <- e.Close(ctx)
		}()
		time.Sleep(20 * time.Millisecond)
		close(db.gate)
		if err := <-closed; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v, want %v", err, context.DeadlineExceeded)
		}
		if err := <-ended; !errors.Is(err, limiter.ErrUnavailable) {
			t.Errorf("the call: %v, want %v", err, limiter.ErrUnavailable)
		}
	})
}
