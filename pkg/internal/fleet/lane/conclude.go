package lane

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// conclude takes in the reply to a copy of a message, or its error. It reports whether the
// same message is to be sent again. The lane is locked.
func (l *Lane) conclude(f *flight, got reply, err error, now time.Time) (again bool) {
	if f.other != nil {
		l.sender.land(f)
		f.other.conclude(got, err, now)
		return false
	}
	if err == nil {
		l.pace.Reply(now.Sub(f.sent))
		var image *schema.Bucket
		if image, err = l.parse(got.item); err == nil {
			l.arrived(f, image, got.refused, now)
			return false
		}
		if f.write != nil && !got.refused {
			err = fmt.Errorf("%w: %w: %w", limiter.ErrUncertain, errUnreadable, err)
		}
		l.sender.land(f)
		if f.once {
			l.concludeOnce(f, true, err, now)
		}
		l.view.known = l.view.known && got.refused
		l.closer.failed(f, err, now)
		return false
	}
	if f.write == nil || f.asks {
		return l.unread(f, awsdb.TranslateRead(err), now)
	}
	return l.unanswered(f, awsdb.Translate(err), now)
}

// arrived takes in an image of the item that a message brought.
func (l *Lane) arrived(f *flight, image *schema.Bucket, refused bool, now time.Time) {
	l.sender.land(f)
	l.held.issue(f.lease)
	if f.report != nil && !refused {
		l.held.ledger.Applied(f.report)
	}
	l.saw(image, f, now)
	l.finder.find(image)
	l.turns.ended(f, image, refused)
	switch {
	case f.write == nil:
	case f.once:
		l.changed(f, refused)
	case f.asks, refused && (f.doubt || f.shown(image)): // a copy can be refused since the write was applied
		l.resolve(f, image, now)
	case refused:
		l.finder.watch(f, image)
		l.closer.again(f, false)
	default:
		l.closer.applied(f, image)
	}
}

// changed takes in the end of a write of a lease or a shard.
func (l *Lane) changed(f *flight, refused bool) {
	if refused {
		l.unpaid += l.view.units()
		return
	}
	l.unpaid = 0
	l.host.Counters.Reaped.Add(f.reaps)
	if f.done != nil {
		f.done()
	}
}

// concludeOnce takes in the end of a write of a lease or a shard that brought no image. perhaps
// says that it may have been applied.
func (l *Lane) concludeOnce(f *flight, perhaps bool, err error, now time.Time) {
	if f.turn { // the next write is tried without it
		l.turns.mine = true
		return
	}
	if perhaps || awsdb.Retryable(err) { // a copy of it may be applied after one that was throttled
		l.held.issue(f.lease)
	}
	if !perhaps {
		l.lessee.unsent(f)
	}
	l.lessee.concludeLease(f.lease, perhaps, now)
	if f.lease == nil {
		l.keeper.rest("changing a shard", err, now)
	}
}

// resolve ends a write that was sent more than once, by an image that refused a copy or
// was read.
func (l *Lane) resolve(f *flight, image *schema.Bucket, now time.Time) {
	switch f.outcome(image) {
	case plan.Landed:
		l.closer.applied(f, image)
	case plan.Dead:
		l.closer.again(f, false)
	case plan.Open, plan.Lost:
		l.closer.dropBookings(f, now)
	}
}

// unread takes in a read that failed.
func (l *Lane) unread(f *flight, err error, now time.Time) (again bool) {
	if awsdb.Passes(err) && now.Before(f.until) && f.tries < readTries && l.host.stopped.Err() == nil {
		return true
	}
	l.sender.land(f)
	if f.write != nil { // it was sent to find the outcome of a write
		l.closer.failed(f, fmt.Errorf("%w: %w", errDropped, err), now)
		return false
	}
	l.usages.reread(now)
	l.closer.refuse(err, now)
	return false
}

const (
	// readTries bounds the copies of a read.
	readTries = 12
	// doubtPatience is how long a write of unknown outcome is sent again.
	doubtPatience = time.Minute
)

// unanswered takes in a write that no reply came for, or one that says it was not applied.
func (l *Lane) unanswered(f *flight, err error, now time.Time) (again bool) {
	unknown := errors.Is(err, limiter.ErrUncertain)
	if f.once {
		l.sender.land(f)
		l.concludeOnce(f, unknown, err, now)
		if errors.Is(err, awsdb.ErrOutage) {
			l.closer.refuse(err, now)
		}
		return false
	}
	if unknown && !f.doubt {
		f.doubt, f.until = true, now.Add(doubtPatience)
	}
	outage := errors.Is(err, awsdb.ErrOutage)
	switch {
	case !f.doubt && awsdb.Retryable(err):
		l.sender.land(f)
		l.pace.Throttled(now, l.host.cfg.Loop.Draw)
		l.finder.watch(f, nil)
		l.closer.again(f, false)
		return false
	case !f.doubt:
		l.sender.land(f)
		l.closer.failed(f, err, now)
		return false
	}
	if outage {
		l.closer.refuse(err, now) // only those that the write is for wait for its outcome
	}
	if l.host.stopped.Err() == nil && (unknown || outage || awsdb.Retryable(err)) {
		if !f.once && f.wanted() && now.Before(f.until) {
			return true
		}
		f.asks, f.tries, f.until = true, 0, now.Add(l.host.cfg.Budget)
		return true
	}
	l.sender.land(f)
	if !unknown {
		err = fmt.Errorf("%w: %w", limiter.ErrUncertain, err)
	}
	l.closer.failed(f, err, now)
	return false
}

// parse reads an item; nil when there is none.
func (l *Lane) parse(item map[string]types.AttributeValue) (*schema.Bucket, error) {
	if len(item) == 0 {
		return nil, nil //nolint:nilnil // no item is a state of the bucket
	}
	var known *limiter.Limits
	if l.view.state != nil {
		known = l.view.state.Limits
	}
	return schema.ParseBucket(l.host.cfg.Table, l.key, item, known)
}
