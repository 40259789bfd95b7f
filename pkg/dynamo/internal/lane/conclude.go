package lane

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

var (
	errLeft    = fmt.Errorf("%w: the caller has left", limiter.ErrUnavailable)
	errStopped = fmt.Errorf("%w: the store was closed", limiter.ErrUnavailable)
	errSilent  = fmt.Errorf("%w: no message to DynamoDB was answered for %v", limiter.ErrUnavailable, silence)
	// errDropped says that the outcome of a write stays unknown: its id is not in the item,
	// where a replica that shares its slot can have written since.
	errDropped = fmt.Errorf("%w: the reply was lost", limiter.ErrUncertain)
	// errUnreadable says that a write was applied to an item that cannot be read.
	errUnreadable = errors.New("the item after the write")
)

// conclude takes in what came of a copy of a message. It reports whether the same message is
// to be sent again. The lane is locked.
func (l *Lane) conclude(f *flight, got reply, err error, now time.Time) (again bool) {
	switch {
	case f.put != nil:
		l.concludeMake(f, got, err, now)
		return false
	case f.peek != nil:
		l.concludePeek(f, got, err, now)
		return false
	}
	if err == nil {
		l.pace.reply(now.Sub(f.sent))
		var image *schema.Bucket
		if image, err = l.parse(got.item); err == nil {
			l.arrived(f, image, got.refused, now)
			return false
		}
		if f.write != nil && !got.refused {
			err = fmt.Errorf("%w: %w: %w", limiter.ErrUncertain, errUnreadable, err)
		}
		l.land(f)
		if f.once {
			l.concludeLease(f, true, err, now)
		}
		l.view.known = l.view.known && got.refused
		l.failed(f, err, now)
		return false
	}
	if f.write == nil || f.asks {
		return l.unread(f, awsdb.TranslateRead(err), now)
	}
	return l.unanswered(f, awsdb.Translate(err), now)
}

// land takes a message out of those under way.
func (l *Lane) land(f *flight) {
	l.out = slices.DeleteFunc(l.out, func(o *flight) bool { return o == f })
	l.running = true // the goroutine of the message steps the lane next
}

// arrived takes in an image of the item that a message brought.
func (l *Lane) arrived(f *flight, image *schema.Bucket, refused bool, now time.Time) {
	l.land(f)
	l.saw(image, f, now)
	switch {
	case f.write == nil:
	case f.once:
		l.changed(f, refused)
	case f.asks, refused && f.doubt:
		l.resolve(f, image, now)
	case refused:
		l.again(f, false)
	default:
		l.applied(f, image, now)
	}
}

// changed takes in the end of a write of a lease or a shard.
func (l *Lane) changed(f *flight, refused bool) {
	if refused {
		l.unpaid += l.units()
		return
	}
	l.unpaid = 0
	l.host.Counters.Reaped.Add(f.reaps)
	if f.done != nil {
		f.done()
	}
}

// resolve ends a write that was sent more than once, by an image that refused a copy or
// was read.
func (l *Lane) resolve(f *flight, image *schema.Bucket, now time.Time) {
	switch outcome := f.outcome(image); {
	case outcome == plan.Landed:
		l.applied(f, image, now)
	case outcome == plan.Dead:
		l.again(f, false)
	case f.books:
		l.dropBookings(f, now)
	default:
		l.again(f, true)
	}
}

// outcome returns what an image of the item tells of a write.
func (f *flight) outcome(image *schema.Bucket) plan.Outcome {
	if image == nil {
		return plan.Open
	}
	return f.write.Outcome(image)
}

// applied ends the requests of a write that was applied.
func (l *Lane) applied(f *flight, image *schema.Bucket, now time.Time) {
	if image != nil {
		f.write.Settle(image)
	}
	l.unpaid = 0
	for _, r := range f.actors {
		back := r.undo
		l.decided(r)
		if back {
			l.owe(r, r.Undo(), now)
		}
	}
}

// again puts the requests of a write that was not applied back into the queue. open says
// that it may have been applied all the same, or may be yet: its takes are counted then.
func (l *Lane) again(f *flight, open bool) {
	l.unpaid += l.units()
	var wait []*Request
	for _, r := range f.actors {
		takes := open && r.claim != detached && r.Takes()
		r.unsure = r.unsure || takes
		if takes && (r.claim == awaited || !r.Keep) {
			l.host.lost(r, errDropped)
		}
		if r.phase = queued; l.stays(r) {
			wait = append(wait, r)
		}
	}
	l.queue = append(wait, l.queue...)
	l.pace.sent = time.Time{} // planned anew at once
}

// stays reports whether a request that no write was applied for still waits for one.
func (l *Lane) stays(r *Request) bool {
	if r.part != nil {
		if r.claim == detached && !r.undo {
			l.settle(r, true) // it was admitted late
		} else {
			l.release(r)
		}
	}
	switch {
	case r.claim == left:
		r.finish(errLeft)
		return false
	case r.claim == awaited || !r.Takes() && !r.undo:
		return true
	case r.undo: // it was denied late: its charges and refunds are booked alone
		r.undo = false
		if r.Request = withoutTakes(r.Request); r.Request == nil {
			r.Request = &plan.Request{}
			l.quit(r)
			return false
		}
	default:
		r.Request = r.Force()
	}
	return true
}

// dropBookings ends the requests of a write with charges or refunds of which it stays
// unknown what became: those that book something could be booked twice by another write.
func (l *Lane) dropBookings(f *flight, now time.Time) {
	var others []*Request
	for _, r := range f.actors {
		if r.Books() {
			l.uncertain(r, errDropped, now)
		} else {
			others = append(others, r)
		}
	}
	f.actors = others
	l.again(f, true)
}

// uncertain ends a request that a write may have been applied for.
func (l *Lane) uncertain(r *Request, err error, now time.Time) {
	if r.claim != detached && !r.Keep && r.Takes() {
		l.host.lost(r, err)
	}
	l.fail(r, err, now)
}

// unread takes in a read that failed.
func (l *Lane) unread(f *flight, err error, now time.Time) (again bool) {
	if awsdb.Passes(err) && now.Before(f.until) && f.tries < readTries && l.host.stopped.Err() == nil {
		return true
	}
	l.land(f)
	if f.write != nil { // it was to tell the outcome of a write
		l.failed(f, fmt.Errorf("%w: %w", errDropped, err), now)
		return false
	}
	l.refuse(err, now)
	return false
}

const (
	// readTries bounds the copies of a read.
	readTries = 12
	// doubtPatience is how long a write is sent again of which it is not known what became.
	doubtPatience = time.Minute
)

// unanswered takes in a write that no reply came for, or one that says it was not applied.
func (l *Lane) unanswered(f *flight, err error, now time.Time) (again bool) {
	unknown := errors.Is(err, limiter.ErrUncertain)
	if f.once {
		l.land(f)
		l.concludeLease(f, unknown, err, now)
		if errors.Is(err, awsdb.ErrOutage) {
			l.refuse(err, now)
		}
		return false
	}
	if unknown && !f.doubt {
		f.doubt, f.until = true, now.Add(doubtPatience)
	}
	outage := errors.Is(err, awsdb.ErrOutage)
	switch {
	case !f.doubt && awsdb.Retryable(err):
		l.land(f)
		l.pace.tries++
		l.pace.rest = now.Add(l.host.backoff(l.pace.tries))
		l.again(f, false)
		return false
	case !f.doubt:
		l.land(f)
		l.failed(f, err, now)
		return false
	}
	if outage {
		l.refuse(err, now) // only those that the write is for wait for its outcome
	}
	if l.host.stopped.Err() == nil && (unknown || outage || awsdb.Retryable(err)) {
		if !f.once && f.wanted() && now.Before(f.until) {
			return true
		}
		f.asks, f.tries, f.until = true, 0, now.Add(l.host.cfg.Budget)
		return true
	}
	l.land(f)
	if !unknown {
		err = fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
	}
	l.failed(f, err, now)
	return false
}

// wanted reports whether a write would be sent again for any of its requests.
func (f *flight) wanted() bool {
	return slices.ContainsFunc(f.actors, func(r *Request) bool { return r.claim != left || r.undo })
}

// failed ends the requests of a message that failed for good, and in an outage all that wait.
func (l *Lane) failed(f *flight, err error, now time.Time) {
	for _, r := range f.actors {
		if errors.Is(err, limiter.ErrUncertain) {
			l.uncertain(r, err, now)
		} else {
			l.fail(r, err, now)
		}
	}
	if errors.Is(err, awsdb.ErrOutage) || f.write == nil || awsdb.IsRefused(err) {
		l.refuse(err, now)
	}
}

// refuse ends all requests that wait.
func (l *Lane) refuse(err error, now time.Time) {
	queue := l.queue
	l.queue = nil
	for _, r := range queue {
		l.fail(r, err, now)
	}
}

// fail ends a request with an error. What is owed is tried again later.
func (l *Lane) fail(r *Request, err error, now time.Time) {
	l.release(r)
	if r.claim == detached {
		if l.postpone(r, err, now) {
			return
		}
		l.host.lost(r, err)
		l.quit(r)
	}
	if r.unsure && !errors.Is(err, limiter.ErrUncertain) {
		err = fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
	}
	r.finish(err)
}

const (
	// owedPatience is how long what is owed is tried again, about every owedPause.
	owedPatience = time.Minute
	owedPause    = time.Second
	// maxOwed is how many owed requests a process keeps at most.
	maxOwed = 1 << 16
)

// postpone has an owed request wait that was certainly not applied. It reports false for
// one whose outcome is unknown, which must not be sent again, and when it or too many have
// waited for long enough.
func (l *Lane) postpone(r *Request, err error, now time.Time) bool {
	if errors.Is(err, limiter.ErrUncertain) || !errors.Is(err, limiter.ErrUnavailable) || l.host.stopped.Err() != nil {
		return false
	}
	if r.patient.IsZero() {
		r.patient = now.Add(owedPatience)
	}
	if now.After(r.patient) || l.host.Counters.Owed.Load() > maxOwed {
		return false
	}
	r.phase, r.doubts = queued, 0
	r.expires = now.Add(owedPause/2 + time.Duration(l.host.cfg.Loop.Draw(int64(owedPause))))
	l.later = append(l.later, r)
	l.wake(r.expires)
	return true
}

// lost counts tokens that were taken for no admitted request, or may have been, and are not
// given back; or what an admitted one owed.
func (s *Lanes) lost(r *Request, err error) {
	s.Counters.Lost.Add(1)
	amounts := make([]any, 0, len(r.Spends))
	for i := range r.Spends {
		if sp := &r.Spends[i]; r.claim == detached || sp.Held && sp.Take > 0 {
			amounts = append(amounts, slog.Int64(sp.Limit, sp.Give+sp.Take+sp.Cost))
		}
	}
	s.cfg.Logger.Warn("tokens of a request that was not admitted were not given back, or those of an admitted one not taken",
		slog.String("entity", r.Site.Bucket.Entity), slog.String("resource", r.Site.Bucket.Resource), slog.Group("millitokens", amounts...), slog.Any("error", err))
}

// backoff returns how long a lane rests after so many messages in a row that DynamoDB had
// no capacity for.
func (s *Lanes) backoff(tries int) time.Duration {
	const first, longest = 4 * time.Millisecond, 400 * time.Millisecond
	d := min(first<<min(tries-1, 10), longest)
	return d/2 + time.Duration(s.cfg.Loop.Draw(int64(d/2)))
}
