package lane

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// closer ends requests, or has them written later.
type closer struct {
	*item
	*requests
	*traffic
	*wakes

	view  *view
	lease leasing
}

// applied ends the requests of a write that was applied.
func (l *closer) applied(b *batch, image *schema.Bucket) {
	if image != nil {
		b.write.Settle(image)
		l.host.Counters.LostRoom.Add(b.write.Overfilled(image))
	}
	l.channels.ended(b, true)
	l.unpaid = 0
	for _, r := range b.actors {
		l.done(r)
	}
}

// done ends a request that a write was applied for.
func (l *closer) done(r *Request) {
	back := r.undone()
	l.byCentre(r)
	if back {
		l.owe(r, r.Undo())
	}
}

// again puts the requests of a write that was not applied back into the queue. open says
// that it may have been applied all the same, or may be yet: its takes are counted then.
func (l *closer) again(b *batch, open bool) {
	if l.unpaid += l.view.units(); !open {
		l.channels.ended(b, false)
	}
	var wait []*Request
	for _, r := range l.unbooked(b.actors) {
		takes := open && r.retakes() // rule: a take in doubt that is made again is counted as lost
		r.unsure = r.unsure || takes
		if takes && (r.state != sentLeft || !r.Keep) {
			l.lost(r, &l.host.Counters.LostUnknown, errDropped)
		}
		if l.stays(r) {
			wait = append(wait, r)
		}
	}
	l.queue = append(wait, l.queue...)
	l.pace.Again() // planned anew at once
}

// unbooked returns the requests of a failed write that still need one. An earlier write booked the
// others, which end.
func (l *closer) unbooked(actors []*Request) []*Request {
	return slices.DeleteFunc(slices.Clone(actors), func(r *Request) bool {
		if r.booked { // rule: a booked request is not booked again
			l.done(r)
		}
		return r.booked
	})
}

// stays reports whether a request whose write was not applied needs another one. It prepares the request
// for that one, or ends it.
func (l *closer) stays(r *Request) bool {
	l.lease.release(r, r.state == sentOwed)
	switch {
	case r.state == sentLeft:
		l.finish(r, errLeft)
		return false
	case r.state == sentDenied: // its charges and refunds are booked alone
		if r.Request = withoutTakes(r.Request); r.Request == nil {
			r.Request = &plan.Request{}
			l.finish(r, nil)
			return false
		}
	case r.state == sentOwed && r.Takes():
		r.forced() // rule: a late admission is booked after a refusal
	}
	l.happen(r, refused)
	return true
}

// dropBookings ends requests of a write with charges, refunds or counts whose outcome stays
// unknown: those that book or count something could do it twice by another write. The
// others go back into the queue.
func (l *closer) dropBookings(b *batch, now time.Time) {
	var others []*Request
	for _, r := range l.unbooked(b.actors) {
		switch {
		case r.late: // rule: a late admission in doubt is booked again
			others = append(others, r)
		case r.Books():
			l.uncertain(r, errDropped, now)
		case r.Counts(): // no tokens are lost, and no caller waits
			l.loseUsageOf(r, errDropped)
			l.finish(r, nil)
		default:
			others = append(others, r)
		}
	}
	b.actors = others
	l.again(b, true)
}

// uncertain ends a request that a write may have been applied for.
func (l *closer) uncertain(r *Request, err error, now time.Time) {
	if !r.state.owes() && !r.Keep && r.Takes() {
		l.lost(r, &l.host.Counters.LostUnknown, err)
	}
	l.fail(r, err, now)
}

// failed ends the requests of a write that failed for good, and in an outage all that wait.
func (l *closer) failed(actors []*Request, err error, now time.Time) {
	l.newer = wanted{} // the next request that asks for newer limits has them tried again
	for _, r := range l.unbooked(actors) {
		if errors.Is(err, limiter.ErrUncertain) {
			l.uncertain(r, err, now)
		} else {
			l.fail(r, err, now)
		}
	}
	if errors.Is(err, awsdb.ErrOutage) || awsdb.IsRefused(err) {
		l.refuse(err, now)
	}
}

// refuse ends all requests that wait.
func (l *closer) refuse(err error, now time.Time) {
	queue := l.queue
	l.queue, l.newer = nil, wanted{}
	for _, r := range queue {
		l.fail(r, err, now)
	}
}

// stop ends all requests that wait, those for capacity included, as the lanes end.
func (l *closer) stop(now time.Time) {
	l.queue, l.later = append(l.queue, l.later...), nil
	l.refuse(errStopped, now)
}

// fail ends a request with an error. An owed request is tried again later.
func (l *closer) fail(r *Request, err error, now time.Time) {
	if errors.Is(err, limiter.ErrInvalid) {
		l.host.warn("invalid", "the item of a bucket cannot be used: its requests fail", slog.String("item", l.key.String()), slog.Any("error", err))
	}
	l.lease.release(r, false)
	if r.state.owes() {
		if l.postpone(r, err, now) {
			return
		}
		if l.bequeath(r, err) {
			l.finish(r, err)
			return
		}
		switch {
		case r.state == sentDenied && !r.Books():
			l.lost(r, &l.host.Counters.LostUnknown, err)
		case r.Books() || r.Takes():
			l.lost(r, &l.host.Counters.LostOwed, err)
		}
		l.loseUsageOf(r, err)
	}
	if r.unsure && !errors.Is(err, limiter.ErrUncertain) {
		err = fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
	}
	l.finish(r, err)
}

const (
	// owedPatience is how long an owed request is tried again, about every owedPause.
	owedPatience = time.Minute
	owedPause    = time.Second
)

// postpone has an owed request wait that was certainly not applied. It reports false for
// one whose outcome is unknown, which must not be sent again. It also does so when the
// request has waited for long enough, or too many wait.
func (l *closer) postpone(r *Request, err error, now time.Time) bool {
	if errors.Is(err, limiter.ErrUncertain) || !errors.Is(err, limiter.ErrUnavailable) || l.host.stopped.Err() != nil {
		return false
	}
	if r.patient.IsZero() {
		r.patient = now.Add(owedPatience)
	}
	if now.After(r.patient) || l.host.Counters.Owed.Load() > maxOwed {
		return false
	}
	if r.state.inWrite() && !l.stays(r) { // rule: a late admission is booked after an outage
		return true
	}
	r.doubts = 0
	r.expires = now.Add(owedPause/2 + time.Duration(l.host.cfg.Loop.Draw(int64(owedPause))))
	l.later = append(l.later, r)
	l.wake(r.expires)
	return true
}

// lost counts tokens that were taken for no admitted request, or may have been, and are not
// given back. It also counts the owed tokens of an admitted one. as is the counter of the cause.
func (l *closer) lost(r *Request, as *atomic.Int64, err error) {
	l.host.Counters.Lost.Add(1)
	amounts, sum := make([]any, 0, len(r.Spends)), int64(0)
	for i := range r.Spends {
		if sp := &r.Spends[i]; r.state.owes() || sp.Held && sp.Take > 0 {
			amounts = append(amounts, slog.Int64(sp.Limit, sp.Give+sp.Take+sp.Cost))
			sum = min(sum+sp.Give+sp.Take+sp.Cost, most)
		}
	}
	as.Add(sum)
	l.host.warn("lost", "tokens of a request that was not admitted were not given back, or those of an admitted one not taken",
		slog.String("entity", r.Site.Bucket.Entity), slog.String("resource", r.Site.Bucket.Resource), slog.Group("millitokens", amounts...), slog.Any("error", err))
}

// resume puts owed requests back into the queue that have waited for capacity long
// enough.
func (l *closer) resume(now time.Time) {
	var wait []*Request
	var next time.Time
	for _, r := range l.later {
		if now.Before(r.expires) {
			if wait = append(wait, r); next.IsZero() || r.expires.Before(next) {
				next = r.expires
			}
			continue
		}
		r.expires = now.Add(l.host.cfg.Budget)
		l.queue = append(l.queue, r)
	}
	if l.later = wait; len(wait) > 0 {
		l.wake(later(next, now.Add(owedGrain)))
	}
}

// owedGrain is the least time between two checks of the owed requests that wait.
const owedGrain = 10 * time.Millisecond

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// expire ends the requests that waited for too long. An owed one waits on for the lane's turn, unless too many do.
func (l *closer) expire(now time.Time) {
	patient := l.crowd != nil && l.host.Counters.Owed.Load() <= maxOwed
	expired := func(r *Request) bool {
		return now.After(r.expires) && (!patient || r.state != owed) // rule: an owed request waits for a turn
	}
	if !slices.ContainsFunc(l.queue, expired) {
		return
	}
	queue := l.queue
	l.queue = nil
	for _, r := range queue {
		if expired(r) {
			l.fail(r, fmt.Errorf("%w: no decision on the bucket in %v", limiter.ErrUnavailable, l.host.cfg.Budget), now)
		} else {
			l.queue = append(l.queue, r)
		}
	}
}

// byCentre ends a request that the item decided.
func (l *closer) byCentre(r *Request) {
	l.lease.answer(r)
	l.finish(r, nil)
}

// finish ends a request, with a decision or an error.
func (l *closer) finish(r *Request, err error) {
	if r.state != over {
		r.Err = err
		l.happen(r, ended)
	}
}

// happen has something happen to a request, and counts those that are owed.
func (l *closer) happen(r *Request, e event) {
	was := r.state
	if e == written {
		l.written(r)
	}
	if !r.happen(e) {
		l.host.warn("transition", "an event came that cannot happen to a request in its state", slog.String("state", was.String()), slog.String("event", e.String()))
	}
	switch counts := r.state.counts(); {
	case counts && !was.counts():
		l.host.work.add()
		l.host.Counters.Owed.Add(1)
	case !counts && was.counts():
		l.host.Counters.Owed.Add(-1)
		l.host.work.done()
	}
}

// bequeath hands an owed request over to the lanes that follow these, if there are any. A charge or a refund whose
// outcome is unknown ends with these.
func (l *closer) bequeath(r *Request, err error) bool {
	heir, open := l.host.heir.Load(), errors.Is(err, limiter.ErrUncertain)
	switch {
	case heir == nil, r.Request == nil, open && (r.state == sentDenied || !r.retakes()):
		return false
	case open:
		l.lost(r, &l.host.Counters.LostUnknown, err)
	case r.state == sentDenied:
		if r.Request = withoutTakes(r.Request); r.Request == nil { // rule: the next lanes take nothing for a call that was denied
			return true
		}
	}
	(*heir)(r.inherited())
	return true
}
