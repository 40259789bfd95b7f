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
	// firstOutage is how long calls fail at once before one is tried. It is cut at random to no
	// less than half, so that replicas do not try together. A replica makes ten calls a second
	// at most then, so that it finds out soon that DynamoDB answers again.
	firstOutage = 200 * time.Millisecond
	// maxOutage bounds that time, which doubles with each try that is refused, for
	// want of credentials for instance: a person has to mend something first.
	maxOutage = 5 * time.Second
	// maxBusy is the same while the calls that are tried are throttled: capacity comes
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
	// Silence is for how long no call must have an answer in its time, and as many as for an
	// outage. A pause of the table or of this machine ends many calls at once, and is no outage.
	Silence = time.Second
	// standstill is how long after its deadline a call may end on a busy machine. One that ends
	// later shows that the machine or the process stood still, and nothing about DynamoDB.
	standstill = Silence / 4
	// hastyCall is how long a call must have waited for an answer for its deadline to
	// say anything of DynamoDB.
	hastyCall = 50 * time.Millisecond
)

// ErrOutage is of calls that are not made because of an outage.
var ErrOutage = errors.New("the store is marked unavailable")

// ErrPaced is of calls that are not made because DynamoDB has only just begun to answer. They
// may be made again soon, as those that it throttles.
var ErrPaced = errors.New("the store answers again, and few calls at a time are made")

// errPaced is the error of such a call.
var errPaced = fmt.Errorf("%w: %w", limiter.ErrUnavailable, ErrPaced)

// outageError is the error of a call that is not made because of an outage. Thousands of calls a second may
// get one, and few are read.
type outageError struct {
	since time.Time
	cause error // of another call
}

func (e *outageError) Error() string {
	return fmt.Sprintf("%v: %v since %s, as calls end in: %v", limiter.ErrUnavailable, ErrOutage, e.since.UTC().Format(time.RFC3339), e.cause)
}

func (*outageError) Unwrap() []error { return []error{limiter.ErrUnavailable, ErrOutage} }

// verdict is the meaning of the end of a call for the state of DynamoDB.
type verdict uint8

const (
	unjudged verdict = iota // the caller left
	answered                // it would answer other calls too
	busy                    // it has no capacity for the call
	late                    // no answer came in the time of the call
	down                    // the connection broke, or the answer is an error of the server
	rejected                // no call gets past it until something is mended
)

// verdictOf judges a call that began and ended at some time, the end with an error of the SDK.
func verdictOf(ctx context.Context, err error, began, ended time.Time) verdict {
	kind := KindOf(err)
	if !errors.Is(kind, limiter.ErrUnavailable) && !errors.Is(kind, limiter.ErrUncertain) {
		return answered
	}
	switch c := classOf(err); {
	case c == contended:
		return answered
	case c == throttled:
		return busy
	case errors.Is(ctx.Err(), context.Canceled), ctx.Err() != nil && ended.Sub(began) < hastyCall, stoodStill(ctx, began, ended): // rule: a call of a machine that stood still says nothing
		return unjudged
	case c == refused:
		return rejected
	case ctx.Err() != nil:
		return late
	}
	return down
}

// stoodStill reports whether a call ended so long after its deadline that nothing ran between.
func stoodStill(ctx context.Context, began, ended time.Time) bool {
	deadline, ok := ctx.Deadline()
	return ok && began.Before(deadline) && ended.Sub(deadline) > standstill
}

// breaker keeps calls from a DynamoDB that does not answer. It is closed, with any
// number of calls at a time; open, with one try now and then; or recovering, with few at a
// time. Many failures in a row open it. Throttles count where there is nothing else for
// throttlePatience, and calls without an answer where there is none for Silence. Where all writes are throttled for
// so long and reads are answered, it is open for writes alone. The first
// answer ends the outage: one call at a time is made then, one more for each that is answered
// and fewer for each that is not. It closes when many calls at a time were answered, or all for a
// while. The zero breaker is closed. It is safe for concurrent use.
type breaker struct {
	mu       sync.Mutex
	epoch    int           // changes with the state: calls of before say nothing of it
	failures int           // in a row
	certain  int           // of them, neither late nor throttled
	row      time.Time     // when the first of them began
	failing  time.Time     // when it ended, or the first of the outage did
	open     bool          // or recovering
	relapses int           // since it was closed
	wait     time.Duration // between two tries, while open
	until    time.Time     // when the next call is tried
	answers  bool          // it is recovering
	limit    int           // of calls at a time, while recovering
	running  int           // of them
	tried    time.Time     // when the last of them began
	mending  time.Time     // since when all calls were answered, while recovering; zero = one was not
	closed   time.Time     // when the last outage was over
	cause    error         // of the outage
	busy     bool          // the cause is a throttle
	refused  int           // writes that were throttled, since one was answered
	refusing time.Time     // when the first of them began
	readable bool          // reads were answered meanwhile
	outages  int64         // since the start
}

// permit is the leave for one call.
type permit struct {
	epoch int
	at    time.Time // when the call began
	reads bool
}

// noEpoch is that of calls which say nothing of the state.
const noEpoch = -1

// allow asks for leave for a call, which reads or writes. Without it the error wraps limiter.ErrUnavailable
// and says why: [ErrOutage] or [ErrPaced].
func (b *breaker) allow(now time.Time, reads bool) (permit, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.open:
		return permit{b.epoch, now, reads}, nil
	case reads && !b.answers && b.readable: // rule: an outage of writes leaves the reads, and no read ends it
		return permit{noEpoch, now, reads}, nil
	case b.refuses(now):
		return permit{}, &outageError{b.failing, b.cause}
	case !b.answers: // a try that never ends keeps no other from being made
		b.until = now.Add(b.wait)
	case b.running >= b.limit && now.Before(b.tried.Add(Silence)):
		return permit{}, errPaced
	}
	b.running++
	b.tried = now
	return permit{b.epoch, now, reads}, nil
}

// refuses reports whether a call would be refused because of an outage.
func (b *breaker) refuses(now time.Time) bool {
	return b.open && !b.answers && now.Before(b.until)
}

// counted returns how many outages there were, and whether there is one: no call was answered
// since it began.
func (b *breaker) counted() (outages int64, unavailable bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outages, b.open && !b.answers
}

// done ends a call that was allowed, and reports whether the breaker opened or closed.
// r, from 0 up to below 1<<16, is drawn at random; after an answer it is of no use.
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
		if !b.answers {
			b.until = now // the try had no result
		}
	case busy, late, down, rejected:
		b.failed(now, p, v, err, r)
	case answered:
		b.answered(now, p.reads)
	}
	return b.open != wasOpen
}

// answered counts an answer: the first ends an outage, and enough of them the recovery.
func (b *breaker) answered(now time.Time, reads bool) {
	b.failures, b.certain = 0, 0 // rule: failures in a row are an outage
	if reads {
		b.readable = b.refused > 0
	} else {
		b.refused, b.readable = 0, false
	}
	b.limit++
	if !b.open {
		return
	}
	b.answers = true // rule: the first answer ends an outage
	if b.mending.IsZero() {
		b.mending = now
	}
	if b.limit > recoveredCalls || now.Sub(b.mending) >= recoveredTime {
		b.enter(false)
		b.relapses, b.closed = 0, now
	}
}

// failed counts the failure of a call: too many of them are an outage.
func (b *breaker) failed(now time.Time, p permit, v verdict, err error, r uint16) {
	b.limit, b.mending = max(b.limit-failureCost, 1), time.Time{}
	if v == busy && !p.reads {
		if b.refused == 0 {
			b.refusing = p.at
		}
		b.refused++
	}
	if b.failures == 0 {
		b.row = p.at
		if !b.open {
			b.failing = now
		}
	}
	b.failures++
	if v == down || v == rejected { // rule: a late answer is no proof that a call failed
		b.certain++
	}
	if b.open && !b.answers || b.proven(now, v) {
		b.begin(now, v, err, r)
	}
}

// proven reports whether the failures in a row prove an outage, of which v is the last.
func (b *breaker) proven(now time.Time, v verdict) bool {
	switch lasts := now.Sub(b.row); v {
	case busy:
		writes := b.refused >= outageFailures && now.Sub(b.refusing) >= throttlePatience // rule: writes that are all refused are an outage beside reads
		return writes || b.failures >= outageFailures && lasts >= throttlePatience
	case late:
		return b.failures >= outageFailures && lasts >= Silence // rule: answers that are late are an outage after a second
	case unjudged, answered, down, rejected:
	}
	return b.certain >= outageFailures
}

// begin begins an outage, or the wait until the next try in one.
func (b *breaker) begin(now time.Time, v verdict, err error, r uint16) {
	readable := b.readable && v == busy
	if readable && !b.open { // rule: an outage of writes is since the first of them
		b.failing = b.refusing
	}
	if b.open {
		b.relapses++
	} else {
		b.outages++
	}
	b.enter(true)
	longest := firstOutage
	switch v {
	case busy:
		longest = maxBusy
	case rejected:
		longest = maxOutage
	case unjudged, answered, late, down:
	}
	b.readable = readable
	wait := min(firstOutage<<min(b.relapses, 16), longest)
	b.wait = wait/2 + wait/2*time.Duration(r)>>16
	b.until = now.Add(b.wait)
	b.cause, b.busy = err, v == busy
}

// silent begins an outage unless there is one: calls wait, and none has been answered for long.
// It reports whether it does.
func (b *breaker) silent(now, since time.Time, cause error, r uint16) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open && !b.answers { // rule: a silence begins one outage
		return false
	}
	wasOpen := b.open
	if !b.open && (b.failures == 0 || since.Before(b.failing)) { // rule: an outage is since the first call that waits
		b.failing = since
	}
	b.begin(now, late, cause, r) // rule: a silence begins an outage
	return !wasOpen
}

// enter changes the state, and drops the counts of the state before.
func (b *breaker) enter(open bool) {
	b.epoch++
	b.open, b.answers = open, false
	b.failures, b.certain, b.limit, b.running, b.cause, b.mending = 0, 0, 1, 0, nil, time.Time{}
	b.refused, b.readable = 0, false
}
