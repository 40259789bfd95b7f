package dynamo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// outageFailures is how many calls in a row must go without an answer to take
	// DynamoDB for unavailable. It happens once in two thousand calls of which half
	// fail, and once in twelve million of which a fifth do.
	outageFailures = 10
	// firstOutage is how long calls fail at once before one is tried; it doubles with
	// every try that fails, up to maxOutage, and is cut by chance to no less than half,
	// so that replicas do not try together.
	firstOutage = 200 * time.Millisecond
	maxOutage   = 5 * time.Second
	// maxBusy is maxOutage while the calls that are tried are throttled: capacity comes
	// back bit by bit.
	maxBusy = time.Second
	// recoveredCalls is how many calls at a time there must have been after an outage
	// before their number is unbounded again.
	recoveredCalls = 128
	// failureCost is how many fewer calls at a time a failure allows after an outage,
	// where an answer allows one more: their number grows while more than two thirds
	// of them are answered.
	failureCost = 2
	// recoveredTime is how long all calls must have been answered after an outage for the
	// same, where there are few.
	recoveredTime = 5 * time.Second
	// throttlePatience is for how long nothing but throttles must come, and as many as for
	// an outage: shorter spells are slept through by sending again.
	throttlePatience = 500 * time.Millisecond
	// hastyCall is how long a call must have waited for an answer for its deadline to
	// say anything of DynamoDB.
	hastyCall = 50 * time.Millisecond

	// doubtPatience is how long a write in doubt is sent again, for those who wait for
	// longer than for a decision, as charges do.
	doubtPatience = time.Minute

	// giveBackPatience is how long a give-back that was not applied is tried again,
	// about every giveBackPause; maxOwed is how many wait at most.
	giveBackPatience = time.Minute
	giveBackPause    = time.Second
	maxOwed          = 4096
)

// errOutage is of calls that are not made because of an outage.
var errOutage = errors.New("DynamoDB is taken for unavailable")

// retryable reports whether an error of the SDK says that the call was not applied
// and the same call may succeed soon: a throttle, or a transaction under way on the
// item.
func retryable(err error) bool {
	c := classOf(err)
	return c == throttled || c == contended
}

// passes reports whether a read that ended in an error is worth another try within the
// time of a decision: not in an outage, nor while something has to be mended first.
func passes(err error) bool {
	return mayPass(err) && !errors.Is(err, errOutage) && classOf(err) != refused
}

// verdict is what the end of a call says of DynamoDB.
type verdict uint8

const (
	unjudged verdict = iota // the caller left
	answered                // it would answer other calls too
	busy                    // it has no capacity for the call
	down                    // no answer, or one that no call gets past
)

// verdictOf judges a call that took some time and ended in an error of the SDK.
func verdictOf(ctx context.Context, err error, took time.Duration) verdict {
	kind := kindOf(err)
	if !errors.Is(kind, limiter.ErrUnavailable) && !errors.Is(kind, limiter.ErrUncertain) {
		return answered
	}
	switch c := classOf(err); {
	case c == contended:
		return answered
	case c == throttled:
		return busy
	case errors.Is(ctx.Err(), context.Canceled), ctx.Err() != nil && took < hastyCall:
		return unjudged
	}
	return down
}

// breaker keeps calls from a DynamoDB that does not answer. It is closed, with any
// number of calls at a time; open, with none; or recovering, with few: one at
// first, then one more for each that is answered and fewer for each that is not. Many
// failures in a row open it, and while it recovers the first call's, too. Throttles
// count as failures when there is nothing else for throttlePatience. It closes when
// many calls at a time were answered, or all for a while. The zero
// breaker is closed. It is safe for concurrent use.
type breaker struct {
	mu       sync.Mutex
	epoch    int       // changes with the state: calls of before say nothing of it
	failures int       // in a row
	failing  time.Time // when the first of them was, or the first of the outage
	open     bool      // or recovering
	relapses int       // since it was closed
	until    time.Time // when the first call is tried
	limit    int       // of calls at a time, while recovering
	running  int       // of them
	tried    time.Time // when the last of them began
	mending  time.Time // since when all calls were answered, while recovering; zero = one was not
	closed   time.Time // when the last outage was over
	cause    error     // of the outage
	busy     bool      // the cause is a throttle
	outages  int64     // since the start
}

// permit is the leave for one call.
type permit struct{ epoch int }

// allow asks for leave for a call. Without it the error wraps limiter.ErrUnavailable
// and says why.
func (b *breaker) allow(now time.Time) (permit, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return permit{b.epoch}, nil
	}
	if b.refuses(now) {
		return permit{}, fmt.Errorf("%w: %w since %s, as calls end in: %v", limiter.ErrUnavailable, errOutage, b.failing.UTC().Format(time.RFC3339), b.cause) //nolint:errorlint // of another call
	}
	b.running++
	b.tried = now
	return permit{b.epoch}, nil
}

// refuses reports whether a call would be refused.
func (b *breaker) refuses(now time.Time) bool {
	// A call that never ends must not keep the breaker open.
	full := b.running >= b.limit && now.Before(b.tried.Add(maxOutage))
	return b.open && (full || now.Before(b.until))
}

// state returns how many outages there were, and whether a call would be refused.
func (b *breaker) state(now time.Time) (outages int64, unavailable bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outages, b.refuses(now)
}

// done ends a call that was allowed, and reports whether the breaker opened or closed.
// r, from 0 up to below 1<<16, is drawn by chance.
func (b *breaker) done(now time.Time, p permit, v verdict, err error, r uint16) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.epoch != b.epoch {
		return false
	}
	wasOpen := b.open
	if b.open {
		b.running--
	}
	switch v {
	case unjudged:
	case busy, down:
		b.failed(now, v == busy, err, r)
	case answered:
		b.failures = 0
		b.answered(now)
	}
	return b.open != wasOpen
}

// answered counts an answer: enough of them end an outage.
func (b *breaker) answered(now time.Time) {
	b.limit++
	if !b.open {
		return
	}
	if b.mending.IsZero() {
		b.mending = now
	}
	if b.limit > recoveredCalls || now.Sub(b.mending) >= recoveredTime {
		b.enter(false)
		b.relapses, b.closed = 0, now
	}
}

// failed counts a failure: too many of them are an outage.
func (b *breaker) failed(now time.Time, isBusy bool, err error, r uint16) {
	b.limit, b.mending = max(b.limit-failureCost, 1), time.Time{}
	if b.failures == 0 && !b.open {
		b.failing = now
	}
	if b.failures++; b.failures < outageFailures || isBusy && now.Sub(b.failing) < throttlePatience {
		return
	}
	if b.open {
		b.relapses++
	} else {
		b.outages++
	}
	b.enter(true)
	b.failures = outageFailures - 1 // one more, unless a call is answered first
	longest := maxOutage
	if isBusy {
		longest = maxBusy
	}
	wait := min(firstOutage<<min(b.relapses, 16), longest)
	b.until = now.Add(wait/2 + wait/2*time.Duration(r)>>16)
	b.cause, b.busy = err, isBusy
}

// enter changes the state, and forgets what was counted in the one before.
func (b *breaker) enter(open bool) {
	b.epoch++
	b.open, b.failures, b.limit, b.running, b.cause, b.mending = open, 0, 1, 0, nil, time.Time{}
}

// guard is a client that asks a breaker before each call.
type guard struct {
	client  Client
	now     func() time.Time
	by      loop
	breaker breaker
	herald  herald
}

// newGuard puts a breaker before a client.
func newGuard(client Client, now func() time.Time, by loop) *guard {
	return &guard{client: client, now: now, by: by}
}

// guarded makes a call if the breaker allows it.
func guarded[I, O any](ctx context.Context, g *guard, call func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error), in *I, opts []func(*dynamodb.Options)) (*O, error) {
	start := g.now()
	p, err := g.breaker.allow(start)
	if err != nil {
		return nil, err
	}
	out, err := call(ctx, in, opts...)
	err = checkReply(in, out, err)
	end := g.now()
	if g.breaker.done(end, p, verdictOf(ctx, err, end.Sub(start)), err, uint16(g.by.draw(1<<16))) { // #nosec G115 -- in range
		g.herald.changed.Store(true)
	}
	g.herald.announce(&g.breaker)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// The calls implement Client.

func (g *guard) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return guarded(ctx, g, g.client.UpdateItem, in, opts)
}

func (g *guard) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return guarded(ctx, g, g.client.PutItem, in, opts)
}

func (g *guard) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return guarded(ctx, g, g.client.GetItem, in, opts)
}

func (g *guard) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return guarded(ctx, g, g.client.DeleteItem, in, opts)
}

func (g *guard) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return guarded(ctx, g, g.client.BatchGetItem, in, opts)
}

func (g *guard) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return guarded(ctx, g, g.client.BatchWriteItem, in, opts)
}

func (g *guard) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return guarded(ctx, g, g.client.Query, in, opts)
}

func (g *guard) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return guarded(ctx, g, g.client.TransactWriteItems, in, opts)
}

func (g *guard) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return guarded(ctx, g, g.client.CreateTable, in, opts)
}

func (g *guard) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return guarded(ctx, g, g.client.DescribeTable, in, opts)
}

func (g *guard) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return guarded(ctx, g, g.client.UpdateTimeToLive, in, opts)
}

// postpone has a give-back that was certainly not applied wait, to go into a later
// write of its lane. It reports false for one that is in doubt, which must not be sent
// again, and when it or too many have waited for long enough.
func (s *Store) postpone(r *request, err error) bool {
	if errors.Is(err, limiter.ErrUncertain) || !errors.Is(err, limiter.ErrUnavailable) || s.stopped.Err() != nil {
		return false
	}
	now := s.cfg.Now()
	if r.patient.IsZero() {
		r.patient = now.Add(giveBackPatience)
	}
	if now.After(r.patient) {
		return false
	}
	if s.owed.Add(1) > maxOwed {
		s.owed.Add(-1)
		return false
	}
	s.work.Add(1)
	s.loop.start(func() {
		defer s.work.Done()
		defer s.owed.Add(-1)
		if s.loop.sleep(s.stopped, giveBackPause/2+time.Duration(s.loop.draw(int64(giveBackPause)))) != nil {
			s.lost(r, err)
			r.done(err)
			return
		}
		r.state.Store(waiting)
		r.confirmed, r.doubts = false, 0
		r.expires = s.cfg.Now().Add(s.cfg.Budget)
		s.queue(r)
	})
	return true
}
