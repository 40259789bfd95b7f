package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// dated is a table whose replies have a date, which its clock gets.
type dated struct {
	*dynamofake.DB

	clock *dynamo.Clock
	off   func() time.Duration // by which the date is ahead
}

func observed[I, O any](ctx context.Context, d *dated, call func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error), in *I) (*O, error) {
	sent := time.Now()
	out, err := call(ctx, in)
	if ctx.Err() == nil {
		d.clock.Observe(sent, time.Now(), sent.Add(d.off()).Truncate(time.Second))
	}
	return out, err
}

// UpdateItem implements dynamo.Client.
func (d *dated) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return observed(ctx, d, d.DB.UpdateItem, in)
}

// PutItem implements dynamo.Client.
func (d *dated) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return observed(ctx, d, d.DB.PutItem, in)
}

// GetItem implements dynamo.Client.
func (d *dated) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return observed(ctx, d, d.DB.GetItem, in)
}

// BatchGetItem implements dynamo.Client.
func (d *dated) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return observed(ctx, d, d.DB.BatchGetItem, in)
}

// newDated returns a store on a table whose replies have dates.
func newDated(t *testing.T, off func() time.Duration) (*dynamo.Store, *limiter.Limiter, *dynamo.Clock) {
	t.Helper()
	db := newTable(t)
	db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: 8 * time.Millisecond} })
	clock := dynamo.NewClock(nil, 0)
	s := newStore(t, &dated{db, clock, off}, func(cfg *dynamo.Config) { cfg.Attempt, cfg.Budget, cfg.Clock = 0, 0, clock })
	if err := s.PutLimits(t.Context(), "default", limiter.ResourceLimitsRef("r"), limiter.Record{Limits: limitsOf(t, limiter.Custom("l", 100, 100, time.Hour))}); err != nil {
		t.Fatal(err)
	}
	return s, decider(t, s, 0), clock
}

// decisions counts calls for some tokens by how they were decided.
type decisions struct{ admitted, denied, policy, late int }

func (n *decisions) ask(t *testing.T, l *limiter.Limiter, entity string, calls int, p limiter.Policy) {
	t.Helper()
	for range calls {
		var d limiter.Decision
		if err := l.Decide(t.Context(), time.Now(), asking(entity, tokens(1), p), &d); err != nil {
			t.Error(err)
		}
		switch {
		case d.Policy != limiter.Unset:
			n.policy++
		case d.Admitted:
			n.admitted++
		default:
			n.denied++
		}
		if d.Late {
			n.late++
		}
		time.Sleep(time.Millisecond)
	}
}

// Where there is no clock, on_unavailable decides for a bucket that is new: dates contradict each
// other, or they are further from this machine's clock than any that AWS accepts.
func TestOnUnavailableDecidesWithoutAClock(t *testing.T) {
	for name, off := range map[string]func(reply int) time.Duration{
		"dates that contradict each other": func(reply int) time.Duration { return time.Duration(reply*37%361-180) * time.Second },
		"an hour ahead":                    func(int) time.Duration { return time.Hour },
		"six minutes behind":               func(int) time.Duration { return -6 * time.Minute },
	} {
		for _, p := range []limiter.Policy{limiter.Allow, limiter.Deny} {
			t.Run(name+", "+p.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var replies atomic.Int64
					s, l, clock := newDated(t, func() time.Duration { return off(int(replies.Add(1))) })
					defer closing(t, s)
					var n decisions
					for i := range 30 {
						if clock.State().Trusted { // at random
							continue
						}
						n.ask(t, l, fmt.Sprint("new", i), 1, p)
					}
					t.Logf("%+v, %+v", n, clock.State())
					if n.admitted+n.denied > 0 || n.policy < 25 {
						t.Errorf("%+v: want all decided by policy", n)
					}
				})
			})
		}
	}
}

// Dates that jump within the bound refill the time between them once, however often they jump.
func TestJumpsOfDatesRefillOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jump = 4 * time.Minute
		var off atomic.Int64
		s, _, _ := newDated(t, func() time.Duration { return time.Duration(off.Load()) })
		defer closing(t, s)
		began, admitted := time.Now(), 0
		for i := range 1500 {
			off.Store(int64([]time.Duration{-jump, jump}[i/150%2]))
			ok, err := s.Take(t.Context(), time.Now(), []limiter.Op{op(t, "e", limiter.Custom("l", 100, 100, time.Hour), limiter.Spend{Take: tokens(1)})})
			if ok {
				admitted++
			} else if err != nil && !errors.Is(err, limiter.ErrUnavailable) {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
		}
		// 100 an hour; the clock of the table goes from -jump to jump, and the time of the test passes.
		most := 100 + int((2*jump+time.Since(began)).Hours()*100) + 1
		t.Logf("%d admitted in %v", admitted, time.Since(began))
		if admitted > most || admitted < 104 {
			t.Errorf("%d were admitted, want 104 to %d", admitted, most)
		}
	})
}
