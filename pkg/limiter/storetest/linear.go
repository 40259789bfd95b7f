package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// linearChecks are about decisions of concurrent callers on one bucket: they are those of one
// caller after the other, so that none is denied needlessly.
func linearChecks() []check {
	return []check{{name: "linearizable", run: checkLinearizable}}
}

// linearStart is the time of the first take from the bucket of a history, before any client's
// clock: a store may know nothing of an unused bucket.
const linearStart = -1000

// linearCall is one decision on the bucket of a history, and linearAnswer its answer.
type (
	linearCall struct {
		now   int64
		spend limiter.Spend
	}
	linearAnswer struct {
		admitted, exceeded bool
		bucket             tokenbucket.Bucket
	}
)

// checkLinearizable makes 8 clients use one bucket in every way at once. It searches for an order
// of their calls in which a token bucket would answer as the store did. It does so for 10 buckets
// without leases.
func checkLinearizable(t T, s limiter.Store) {
	l := limiter.Custom("l", 20, 7, 1100*time.Millisecond).WithMaxDebt(15)
	for bucket := range 10 {
		h, err := linearHistory(t, s, fmt.Sprint("user", bucket), l)
		if err != nil {
			t.Fatalf("a client failed: %v", err)
		}
		if got := porcupine.CheckOperationsTimeout(linearModel(l), h, 10*time.Second); got != porcupine.Ok {
			t.Fatalf("bucket %d: a history of %d calls is not that of a token bucket: %v", bucket, len(h), got)
		}
	}
}

func linearHistory(t T, s limiter.Store, entity string, l limiter.Limit) ([]porcupine.Operation, error) {
	c := newClient(t, s)
	ctx, cancel := within(t)
	defer cancel()
	c.want(true, linearStart, c.one(entity, l, limiter.Spend{Take: tokens(1)}))
	var (
		mu   sync.Mutex
		all  []porcupine.Operation
		tick atomic.Int64
		now  clock
		g    errgroup.Group
	)
	for id := range 8 {
		op := c.one(entity, l, limiter.Spend{})
		op.Lease.None = true
		r := seeded(4, id)
		g.Go(func() error {
			for range 40 {
				call := linearCall{now: now.unsteady(r, 120, 200), spend: linearSpend(r)}
				begin := tick.Add(1)
				answer, err := linearTake(ctx, s, op, call)
				if err != nil {
					return err
				}
				end := tick.Add(1)
				mu.Lock()
				all = append(all, porcupine.Operation{ClientId: id, Input: call, Call: begin, Output: answer, Return: end})
				mu.Unlock()
			}
			return nil
		})
	}
	return all, g.Wait()
}

// linearSpend draws the spend of a client: mostly a take.
func linearSpend(r *rand.Rand) limiter.Spend {
	amount := 1 + r.Int64N(tokens(8))
	switch r.IntN(8) {
	case 0:
		return limiter.Spend{Look: true}
	case 1:
		return limiter.Spend{Charge: amount, Take: amount / 3}
	case 2:
		return limiter.Spend{Refund: amount}
	default:
		return limiter.Spend{Take: amount}
	}
}

func linearTake(ctx context.Context, s limiter.Store, op limiter.Op, call linearCall) (linearAnswer, error) {
	ops := []limiter.Op{spending(op, call.spend)}
	admitted, err := s.Take(ctx, at(call.now), ops)
	sp := ops[0].Spends[0]
	return linearAnswer{admitted, sp.Exceeded, sp.Bucket}, err
}

// linearModel is one bucket under one limit, used by one caller. A store may decide at a later time
// than the caller's; the answer has that time. Decisions of calls that overlap need not be in the
// order of their times: an earlier time finds fewer tokens. So the model has the time at which the
// bucket is full, see linearState.
func linearModel(l limiter.Limit) porcupine.Model {
	return porcupine.Model{
		Init: func() any {
			return linearState{l.Params(), l.DebtFloor(), tokens(1) * l.Params().Period}
		},
		Step: func(state, input, output any) (bool, any) {
			s, ok := state.(linearState)
			call, callOK := input.(linearCall)
			answer, answerOK := output.(linearAnswer)
			if !ok || !callOK || !answerOK || answer.bucket.Refilled < epoch+call.now {
				return false, state
			}
			next, admitted := s.decide(call.spend, answer.bucket.Refilled)
			return answer == linearAnswer{admitted, !admitted, next.at(answer.bucket.Refilled)}, next
		},
	}
}

// linearState is a bucket, given by the point of its refill at which it is full, in units of
// 1/Period millitoken. Refill is Amount units in each millisecond after linearStart.
type linearState struct {
	params tokenbucket.Params
	floor  int64
	full   int64
}

// refilled is the refill up to a time.
func (s linearState) refilled(ms int64) int64 { return (ms - epoch - linearStart) * s.params.Amount }

// at returns the bucket at a time.
func (s linearState) at(ms int64) tokenbucket.Bucket {
	units := s.params.Capacity*s.params.Period - max(s.full-s.refilled(ms), 0)
	whole := units / s.params.Period
	if units%s.params.Period < 0 {
		whole--
	}
	return tokenbucket.Bucket{Tokens: whole, Remainder: units - whole*s.params.Period, Refilled: ms}
}

// less returns the bucket with fewer tokens, as of a time.
func (s linearState) less(millitokens, ms int64) linearState {
	if millitokens > 0 {
		s.full = max(s.full, s.refilled(ms)) + millitokens*s.params.Period
	}
	return s
}

// decide returns the bucket after a spend at a time, and whether it was admitted.
func (s linearState) decide(sp limiter.Spend, ms int64) (next linearState, admitted bool) {
	net := sp.Charge - sp.Refund
	s.full -= max(-net, 0) * s.params.Period
	found, need := s.at(ms).Tokens, sp.Take
	if sp.Look {
		need = max(need, limiter.Milli)
	}
	admitted = need == 0 || found >= need
	if admitted {
		s, found = s.less(sp.Take, ms), found-sp.Take
	}
	return s.less(min(max(net, 0), found-min(found, s.floor)), ms), admitted
}
