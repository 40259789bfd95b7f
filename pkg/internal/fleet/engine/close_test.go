package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
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

// Close waits for the calls in flight, which get their decision, and takes no others.
func TestCloseWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{}) // of a call that has no message under way
		e := newEngine(t, newTable(t), func(cfg *engine.Config) {
			cfg.Namespace = func(ctx context.Context, name string) (string, error) {
				<-gate
				return namespace(ctx, name)
			}
		})
		o := op(t, "e", limiter.PerDay("l", 1000), limiter.Spend{Take: tokens(1)})
		took, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			admitted, err := e.Take(t.Context(), time.Now(), []limiter.Op{o})
			if err == nil && !admitted {
				err = errors.New("denied")
			}
			took <- err
		}()
		synctest.Wait()
		go func() { closed <- e.Close(t.Context()) }()
		synctest.Wait()
		if _, err := e.Take(t.Context(), time.Now(), []limiter.Op{o}); !errors.Is(err, limiter.ErrClosed) {
			t.Errorf("a call while the engine ends: %v, want %v", err, limiter.ErrClosed)
		}
		select {
		case err := <-closed:
			t.Errorf("Close ends before a call in flight: %v", err)
		default:
		}
		close(gate)
		if err := <-took; err != nil {
			t.Errorf("the call in flight: %v", err)
		}
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
