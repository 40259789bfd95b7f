package awsdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
)

// ErrOutage is of calls that are not made because of an outage.
var ErrOutage = errors.New("DynamoDB is marked unavailable")

// verdict is the meaning of the end of a call for the state of DynamoDB.
type verdict uint8

const (
	unjudged verdict = iota // the caller left
	answered                // it would answer other calls too
	busy                    // it has no capacity for the call
	down                    // no answer, or one that no call gets past
)

// verdictOf judges a call that took some time and ended in an error of the SDK.
func verdictOf(ctx context.Context, err error, took time.Duration) verdict {
	kind := KindOf(err)
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
		return permit{}, fmt.Errorf("%w: %w since %s, as calls end in: %v", limiter.ErrUnavailable, ErrOutage, b.failing.UTC().Format(time.RFC3339), b.cause) //nolint:errorlint // of another call
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

// counted returns how many outages there were, and whether a call would be refused.
func (b *breaker) counted(now time.Time) (outages int64, unavailable bool) {
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

// silent begins an outage unless there is one: calls wait, and none has been answered for long.
// It reports whether it does.
func (b *breaker) silent(now, since time.Time, cause error, r uint16) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		return false
	}
	if b.failures == 0 || since.Before(b.failing) {
		b.failing = since
	}
	b.failures = outageFailures
	b.failed(now, false, cause, r)
	return true
}

// enter changes the state, and drops the counts of the state before.
func (b *breaker) enter(open bool) {
	b.epoch++
	b.open, b.failures, b.limit, b.running, b.cause, b.mending = open, 0, 1, 0, nil, time.Time{}
}
